// The application's worker: the same code, which finds itself in a worker.
import init from './zswap-explainer.js';

// Called by the application when a run first needs another compressor than zstd.
globalThis.loadCodecs = async () => {
  const codecs = await import('./zswap-codecs.js');
  await codecs.default();
  return codecs;
};

await init();
