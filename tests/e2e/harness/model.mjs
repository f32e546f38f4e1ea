// The page's own state, and the model's word on it.

/** What the page says it shows. */
export function state(page) {
  return page.evaluate(read);
}

/** Waits until what the page shows fulfils `condition(now, argument)`; gives it. */
export async function until(page, condition, argument) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const now = await state(page);
    if (now && condition(now, argument)) return now;
    if (Date.now() > deadline) {
      throw new Error(`not within a minute: ${condition}; the page says ${JSON.stringify(now)}`);
    }
    await page.waitForTimeout(20);
  }
}

/** Waits until the page has opened at a moment of its own choice. */
export function opened(page) {
  return until(page, (now) => now && now.searching === 'false' && now.waiting === 'false' && now.frameHash !== undefined);
}

/** Chooses a design and waits until the page has opened there, with all reads known. */
export async function chosen(page, name, context) {
  await opened(page);
  await page.getByRole('radio', { name }).check({ force: true });
  await until(
    page,
    (now, context) =>
      now.context === context && now.searching === 'false' && now.waiting === 'false' && now.traceHash !== undefined,
    context,
  );
}

/** The model's frame for a state of the page, by the straight way: its hash and what tests look for. */
export function modelFrame(page, { context, seed, atNs }) {
  return page.evaluate(
    async ([context, seed, atNs]) => {
      const application = await import(new URL('zswap-explainer.js', document.baseURI));
      return JSON.parse(application.model_frame('b1-1cpu', context, BigInt(seed), BigInt(atNs)));
    },
    [context, seed, atNs],
  );
}

/** In the page: what it says of itself. */
function read() {
  const main = document.querySelector('main');
  if (!main) return null;
  const { atNs, run, seed, context, playing, waiting, searching, window, position, reads } = main.dataset;
  const { traceHash, stateHash, frameHash } = main.dataset;
  return {
    atNs: Number(atNs),
    reads: Number(reads),
    place: `${window}:${position}`,
    run,
    seed,
    context,
    playing,
    waiting,
    searching,
    traceHash,
    stateHash,
    frameHash,
  };
}
