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

/** The JSON of the model's frame for a state of the page, by the straight way. */
export function modelFrame(page, { context, seed, atNs }) {
  return page.evaluate(
    async ([context, seed, atNs]) => {
      const application = await import(new URL('zswap-explainer.js', document.baseURI));
      const answer = await fetch(new URL('assets/scenarios/b1-1cpu.toml', document.baseURI));
      const scenario = (await answer.text()).replace(/^context = .*$/m, `context = "${context}"`);
      return application.model_frame(scenario, BigInt(seed), BigInt(atNs));
    },
    [context, seed, atNs],
  );
}

/** FNV-1a, 64 bits, of a text, as the page writes it. */
export function fnv(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, '0');
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
