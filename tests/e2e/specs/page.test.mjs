// The page as a whole: that it opens, anywhere, under a strict policy, with what it should load.
import assert from 'node:assert/strict';
import { WIDTHS } from '../harness/browser.mjs';
import { assertAccessible, assertFits, pageTest } from '../harness/test.mjs';
import { firstVisit } from '../harness/xtask.mjs';

const STRICT = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'";

/** Waits until the browser runs nothing new: what the page loads at its start is there. */
const settled = (page) => page.waitForLoadState('networkidle');

pageTest('opens under a strict content security policy', {}, async ({ page, address }) => {
  await settled(page);
  assert.match(await page.title(), /Zswap/);
  const { headers, hasInline } = await page.evaluate(async (url) => {
    const answer = await fetch(url);
    const html = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const inline = 'script:not([src]), style, [style], [onload], [onclick]';
    return { headers: Object.fromEntries(answer.headers), hasInline: html.querySelector(inline) !== null };
  }, address);
  assert.equal(headers['content-security-policy'], STRICT);
  assert.equal(hasInline, false, 'the page holds an inline script or style');
});

for (const under of ['/', '/some/where/else/']) {
  pageTest(`loads the application below ${under}`, { under }, async ({ page, address, requests }) => {
    await settled(page);
    assert.ok(requests.includes(`${address}zswap-explainer_bg.wasm`), requests.join('\n'));
  });
}

pageTest('loads at its start what the size budget counts, and no more', {}, async ({ page, address, requests }) => {
  await settled(page);
  const counted = await firstVisit();
  const loaded = new Set(requests.map((url) => new URL(url).href.slice(address.length).split(/[?#]/)[0]));
  loaded.delete('');
  const uncounted = [...loaded].filter((file) => !counted.includes(file));
  assert.deepEqual(uncounted, [], 'preload these in index.html, or load them later');
});

for (const width of Object.values(WIDTHS)) {
  for (const theme of ['light', 'dark']) {
    pageTest(`is accessible and fits ${width} px, ${theme}`, { width, theme }, async ({ page }) => {
      await settled(page);
      await assertFits(page);
      await assertAccessible(page);
    });
  }
}
