// The codecs that the worker loads later: runs are those of the native build, and a missing file is told of.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pageTest } from '../harness/test.mjs';
import { RUN, settingsOf, startMessage } from '../harness/worker.mjs';

// The native build is held to the same numbers.
const golden = readFileSync(new URL('../../../crates/lab/tests/golden.rs', import.meta.url), 'utf8');
const [, pinned] = /const CODECS: [^=]+= \[([^;]+)\];/.exec(golden);
const hashes = [...pinned.matchAll(/\("([\w-]+)", 0x([0-9a-f_]+)\)/g)].map(([, name, hash]) => [
  name,
  BigInt(`0x${hash.replaceAll('_', '')}`).toString(),
]);

/** What a worker answers to the start of a second of the scenario with a compressor. */
async function answer(page, address, compressor) {
  const scenario = await page.evaluate(async (url) => (await fetch(url)).text(), `${address}assets/scenarios/b1-1cpu.toml`);
  const settings = settingsOf(scenario, { compressor, duration_s: '1' });
  return page.evaluate(RUN, [`${address}worker.js`, startMessage(settings, 1)]);
}

pageTest('runs with each compressor as the native build does', {}, async ({ page, address, requests }) => {
  assert.equal(hashes.length, 4);
  const isCodecs = (url) => url.includes('zswap-codecs');
  assert.equal(requests.some(isCodecs), false, 'the first visit loads the codecs');
  for (const [compressor, traceHash] of hashes) {
    assert.deepEqual(await answer(page, address, compressor), { traceHash }, compressor);
  }
  assert.equal(requests.some(isCodecs), true);
});

for (const file of ['zswap-codecs.js', 'zswap-codecs_bg.wasm']) {
  pageTest(`says so if ${file} is missing`, {}, async ({ page, address, problems }) => {
    await page.route(`**/${file}`, (route) => route.fulfill({ status: 404, body: '' }));
    const { words } = await answer(page, address, 'lzo');
    assert.match(words, /^The file with its compressor could not be loaded \(/);
    problems.length = 0;
  });
}
