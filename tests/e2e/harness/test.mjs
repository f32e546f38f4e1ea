// `pageTest`: a test of the page that also fails on anything that goes wrong beside it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import { launch, open } from './browser.mjs';
import { serve } from './xtask.mjs';

// One browser per file of tests, and one server per path that they ask for.
const started = new Map();

function once(name, start) {
  if (!started.has(name)) started.set(name, start());
  return started.get(name);
}

after(async () => {
  for (const [name, starting] of started) {
    const running = await starting;
    await (name === 'browser' ? running.close() : running.stop());
  }
});

/**
 * Declares a test of the page.
 *
 * Options: `width`, `height`, `theme` ('light' or 'dark'), `motion`
 * ('reduce' or 'no-preference'); `under`, the path that the site is served
 * below; `path`, what follows that in the address, such as '#/…' or '?…'.
 *
 * The body gets `{ page, address, requests, problems }`. An error on the
 * console, an uncaught one, a failed request or one to another host fails the
 * test, unless the body empties `problems` of what it expected.
 */
export function pageTest(name, options, body) {
  test(name, { timeout: 120_000 }, async () => {
    const { under = '/', path = '', ...rest } = options;
    const browser = await once('browser', launch);
    const { address } = await once(`site ${under}`, () => serve({ under }));
    const opened = await open(browser, address + path, rest);
    try {
      await body({ ...opened, address });
      assert.deepEqual(opened.problems, [], 'something went wrong in the page');
    } catch (error) {
      for (const problem of opened.problems) console.error(`in the page: ${problem}`);
      throw error;
    } finally {
      await opened.close();
    }
  });
}

/** Fails on anything that keeps people from using the page. */
export async function assertAccessible(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target }) => `${id}: ${help}: ${target.join(' ')}`),
  );
  assert.deepEqual(found, [], 'accessibility');
}

/** Fails when the page is wider than the window. */
export async function assertFits(page) {
  const [content, window] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(content <= window, `the page is ${content} px wide in a window of ${window} px`);
}
