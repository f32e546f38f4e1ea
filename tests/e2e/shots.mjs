// npm run shots -- DIR [PATH]: pictures of the built page, for people to look at.
// PATH is what follows the site's address, such as '#/…' or '?…'.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, open, WIDTHS } from './harness/browser.mjs';
import { serve } from './harness/xtask.mjs';

const [folder, path = ''] = process.argv.slice(2);
if (!folder) {
  console.error('usage: npm run shots -- DIR [PATH]');
  process.exit(2);
}

await mkdir(folder, { recursive: true });
const [browser, site] = await Promise.all([launch(), serve()]);
try {
  for (const width of Object.values(WIDTHS)) {
    for (const theme of ['light', 'dark']) {
      const { page, problems, close } = await open(browser, site.address + path, { width, theme });
      await page.waitForLoadState('networkidle');
      // The first frames of a running model.
      await page.waitForTimeout(1500);
      const file = join(folder, `${width}-${theme}.png`);
      await page.screenshot({ path: file, fullPage: true });
      console.log(file, ...problems);
      await close();
    }
  }
} finally {
  await Promise.all([browser.close(), site.stop()]);
}
