// Moving about in time, design and seed: what the page shows is what the model says.
import assert from 'node:assert/strict';
import { assertAccessible, assertFits, pageTest } from '../harness/test.mjs';
import { chosen, modelFrame, opened, state, until } from '../harness/model.mjs';

/** Fails unless the page shows exactly the model's frame for its design, seed and time. */
async function assertShowsModel(page) {
  const shown = await state(page);
  const frame = await modelFrame(page, shown);
  assert.ok(!frame.error, frame.error);
  assert.equal(shown.frameHash, frame.hash, `the frame at ${shown.atNs} ns differs from the model's`);
  return frame;
}

pageTest('opens at a slow read, paused, with the preempted owner in sight', {}, async ({ page }) => {
  await opened(page);
  const frame = await assertShowsModel(page);
  assert.equal((await state(page)).playing, 'false');
  assert.ok(frame.alarm, 'nobody waits in vain where the page opens');
  const name = (id) => frame.tasks[id].name;
  const chain = await page.locator('.chain').innerText();
  for (const id of [frame.alarm.waiter, frame.alarm.owner, frame.cpus[0].running]) {
    assert.ok(chain.includes(name(id)), `${name(id)} is not in the chain: ${chain}`);
  }
  assert.equal(await page.locator('.stage .pill').count(), 1);
  const pill = await page.locator('.stage .on-pill').textContent();
  assert.ok(pill.startsWith(name(frame.alarm.waiter)), pill);
  // The owner's body is in the run queue, and it is the one that is marked.
  const { label } = frame.tasks[frame.alarm.owner];
  const marked = await page.locator('.stage .token.alarm:not(.ghost)').allTextContents();
  assert.deepEqual(marked, [label]);
});

pageTest('Space plays and pauses', {}, async ({ page }) => {
  await opened(page);
  const before = await state(page);
  await page.keyboard.press('Space');
  await until(page, (now, before) => now.playing === 'true' && now.atNs > before.atNs, before);
  await page.keyboard.press('Space');
  const after = await until(page, (now) => now.playing === 'false' && now.waiting === 'false');
  assert.ok(after.atNs > before.atNs);
  await page.waitForTimeout(200);
  assert.equal((await state(page)).atNs, after.atNs, 'time goes by while paused');
  await assertShowsModel(page);
});

pageTest('stepping back is never having stepped', {}, async ({ page }) => {
  await opened(page);
  const start = await state(page);
  const seen = [start.stateHash];
  const press = async (key) => {
    const { place } = await state(page);
    await page.keyboard.press(key);
    return until(page, (now, place) => now.place !== place && now.stateHash !== undefined, place);
  };
  for (let step = 0; step < 12; step += 1) {
    seen.push((await press(step % 2 ? 'Period' : 'ArrowRight')).stateHash);
  }
  for (let step = 12; step > 0; step -= 1) {
    const now = await press(step % 2 ? 'Comma' : 'ArrowLeft');
    assert.equal(now.stateHash, seen[step - 1], `one step back from record ${step}`);
  }
  const { place, stateHash } = await state(page);
  assert.deepEqual([place, stateHash], [start.place, start.stateHash]);
});

pageTest('scrubbing goes to the moment, forwards and back', {}, async ({ page }) => {
  await opened(page);
  const slider = page.getByRole('slider', { name: 'Moment of the run' });
  for (const ms of [3210, 47.3, 11_990]) {
    await slider.fill(String(ms * 10));
    const now = await until(page, (now, ns) => now.atNs === ns && now.waiting === 'false', ms * 1e6);
    assert.equal(now.atNs, ms * 1e6);
    await assertShowsModel(page);
  }
});

for (const [name, context] of [['Patch 1', 'split'], ['Patch 2', 'onstack'], ['Before', 'shared']]) {
  pageTest(`shows the design ${name}`, {}, async ({ page }) => {
    if (context === 'shared') await chosen(page, 'Patch 2', 'onstack');
    await chosen(page, name, context);
    const frame = await assertShowsModel(page);
    // zswap has a mutex for its parameters, too, which no design changes.
    const ofContext = (lock) => lock.is_mutex && lock.name.startsWith('acomp_ctx.');
    const mutexes = frame.locks.filter(ofContext).length;
    assert.equal(mutexes, context === 'shared' ? 1 : 2);
    const words = await page.locator('.sum').innerText();
    if (context === 'onstack') assert.match(words, /None took more than 10 ms/);
    else assert.match(words, /[1-9]\d* took more than 10 ms/);
  });
}

pageTest('a seed decides the run', {}, async ({ page }) => {
  const first = await finished(page);
  const report = await page.evaluate(async () => {
    const application = await import(new URL('zswap-explainer.js', document.baseURI));
    return JSON.parse(application.bench_run('b1-1cpu', 1n));
  });
  assert.equal(first.traceHash, report.trace_hash);
  assert.equal(first.reads, report.reads);
  const seed = page.getByRole('textbox', { name: 'Seed' });
  await seed.fill('7');
  await seed.press('Enter');
  await until(page, (now) => now.seed === '7' && now.traceHash !== undefined);
  const second = await state(page);
  assert.notEqual(second.traceHash, first.traceHash);
  await assertShowsModel(page);
  await seed.fill('1');
  await seed.press('Enter');
  const third = await until(page, (now) => now.seed === '1' && now.traceHash !== undefined);
  assert.equal(third.traceHash, first.traceHash);
});

/** Waits for the pass over the whole run. */
async function finished(page) {
  await opened(page);
  return until(page, (now) => now.traceHash !== undefined);
}

pageTest('a click on the slowest dot goes to the slowest read', {}, async ({ page }) => {
  await finished(page);
  const button = page.locator('.jumps button').first();
  const [begin, latency] = await Promise.all(
    ['data-begin-ns', 'data-latency-ns'].map(async (name) => Number(await button.getAttribute(name))),
  );
  const slider = page.getByRole('slider', { name: 'Moment of the run' });
  await slider.fill('90000');
  await until(page, (now) => now.atNs === 9e9 && now.waiting === 'false');
  const ring = await page.locator('.reads .ring').boundingBox();
  await page.mouse.click(ring.x + ring.width / 2, ring.y + ring.height / 2);
  const inside = (now, [from, to]) => now.waiting === 'false' && now.atNs > from && now.atNs < to;
  await until(page, inside, [begin, begin + latency]);
  const frame = await assertShowsModel(page);
  assert.ok(frame.alarm, 'the slowest read does not show what it waits for');
  assert.match(await page.locator('.bracket text').textContent(), /this read takes/);
});

pageTest('a click on the timeline goes there, and the wheel zooms', {}, async ({ page }) => {
  await opened(page);
  const box = await page.locator('.timeline .surface').boundingBox();
  const before = await state(page);
  await page.mouse.click(box.x + box.width * 0.08, box.y + 60);
  const after = await until(page, (now, ns) => now.atNs < ns, before.atNs);
  await assertShowsModel(page);
  const label = () => page.locator('.timeline .surface').getAttribute('aria-label');
  const wide = await label();
  await page.mouse.wheel(0, -300);
  await page.waitForFunction((wide) => document.querySelector('.timeline .surface').getAttribute('aria-label') !== wide, wide);
  assert.equal((await state(page)).atNs, after.atNs, 'zooming moves time');
});

pageTest('another task can be explained', {}, async ({ page }) => {
  await opened(page);
  const frame = await assertShowsModel(page);
  const other = frame.tasks.find(({ id }) => id === frame.alarm.owner);
  await page.getByRole('radio', { name: other.name }).check({ force: true });
  await page.waitForFunction((name) => document.querySelector('.why h2').textContent.includes(name), other.name);
});

for (const width of [1280, 390]) {
  for (const theme of ['light', 'dark']) {
    pageTest(`at a slow read it is accessible and fits ${width} px, ${theme}`, { width, theme }, async ({ page }) => {
      await opened(page);
      await assertFits(page);
      await assertAccessible(page);
      // The controls are in reach without scrolling.
      const play = await page.getByRole('button', { name: 'Play' }).boundingBox();
      const height = await page.evaluate(() => window.innerHeight);
      assert.ok(play.y + play.height <= height);
    });
  }
}

pageTest('the switch of colours is remembered', { theme: 'light' }, async ({ page }) => {
  await opened(page);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole('radio', { name: 'Dark' }).check({ force: true });
  assert.notEqual(await ground(), light);
  await page.reload();
  await opened(page);
  assert.notEqual(await ground(), light);
});

pageTest('says so when the worker cannot be loaded, and what to do', {}, async ({ page, problems }) => {
  await page.route('**/worker.js', (route) => route.abort());
  await page.reload();
  const words = await page.getByRole('alert').innerText();
  assert.match(words, /has stopped.*Load the page again/s);
  problems.length = 0;
});
