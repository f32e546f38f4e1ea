// node bench.mjs SCENARIO RUNS: runs of the built page's engine, as a JSON list.
//
// Each run happens in a worker of its own: its memory is fresh, and the
// application, finding itself in a worker, draws nothing.
import { launch } from './harness/browser.mjs';
import { serve } from './harness/xtask.mjs';

const WORKER = `
import init, * as application from './zswap-explainer.js';
const { searchParams } = new URL(import.meta.url);
try {
  await init();
  if (!application.bench_run) throw new Error('the application exports no bench_run');
  const run = application.bench_run(searchParams.get('scenario'), BigInt(searchParams.get('seed')));
  postMessage({ bench: JSON.parse(run) });
} catch (error) {
  postMessage({ bench: null, error: String(error) });
}
`;

const [scenario, runs] = process.argv.slice(2);
const [browser, site] = await Promise.all([launch(), serve()]);
try {
  const page = await browser.newPage();
  const script = { contentType: 'text/javascript', body: WORKER };
  await page.route('**/bench-worker.js*', (route) => route.fulfill(script));
  // Any file of the site but the page, which would run the application as well.
  await page.goto(`${site.address}worker.js`);
  const results = [];
  for (let seed = 1; seed <= Number(runs); seed += 1) {
    const query = new URLSearchParams({ scenario, seed });
    results.push(await page.evaluate(run, `${site.address}bench-worker.js?${query}`));
  }
  console.log(JSON.stringify(results));
} finally {
  await Promise.all([browser.close(), site.stop()]);
}

/** In the page: the answer of one worker. The application may send messages of its own before. */
function run(url) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(url, { type: 'module' });
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (!data || data.bench === undefined) return;
      worker.terminate();
      if (data.error) reject(new Error(data.error));
      resolve(data.bench);
    };
  });
}
