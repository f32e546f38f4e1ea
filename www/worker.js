// The application's worker: the same code, which finds itself in a worker.
import init from './zswap-explainer.js';

await init();
