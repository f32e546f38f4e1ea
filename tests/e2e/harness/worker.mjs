// The page's worker without the page: the messages of crates/ui/src/protocol.rs, as far as tests need them.

/** The settings of a scenario's file, as pairs of texts, some of them replaced. */
export function settingsOf(toml, replaced) {
  const settings = new Map();
  let section = '';
  for (const line of toml.split('\n')) {
    const header = /^\[(\w+)\]/.exec(line);
    if (header) section = `${header[1]}.`;
    const pair = /^(\w+) *= *(?:"([^"]*)"|(\d+|-\d+))/.exec(line);
    if (pair) settings.set(section + pair[1], pair[2] ?? pair[3]);
  }
  for (const [key, value] of Object.entries(replaced)) settings.set(key, value);
  return [...settings];
}

/** The bytes of `ToWorker::Start`: a variant, then its fields, numbers as varints. */
export function startMessage(settings, seed) {
  const number = (value) => (value < 128 ? [value] : [(value % 128) + 128, ...number(Math.floor(value / 128))]);
  const text = (value) => [...number(Buffer.byteLength(value)), ...Buffer.from(value)];
  const pairs = settings.flatMap(([key, value]) => [...text(key), ...text(value)]);
  return [...number(0), ...number(0), ...number(settings.length), ...pairs, ...number(seed)];
}

/**
 * To be evaluated in a page: starts a worker, sends it a message, and gives what the run comes to: `{ traceHash }`
 * as a decimal number or `{ words }` of a failure.
 */
export const RUN = ([script, message]) =>
  new Promise((resolve, reject) => {
    const [READY, PROGRESS, FAILED] = [0, 2, 4];
    const worker = new Worker(script, { type: 'module' });
    const end = (result) => {
      worker.terminate();
      resolve(result);
    };
    worker.onerror = (event) => reject(new Error(event.message || 'the worker could not be loaded'));
    worker.onmessage = ({ data }) => {
      const bytes = new Uint8Array(data);
      let at = 0;
      const number = () => {
        let value = 0n;
        for (let shift = 0n; ; shift += 7n) {
          const byte = bytes[at++];
          value |= BigInt(byte & 127) << shift;
          if (byte < 128) return value;
        }
      };
      const variant = Number(number());
      if (variant === READY) {
        worker.postMessage(Uint8Array.from(message).buffer);
        return;
      }
      number(); // the run
      if (variant === FAILED) {
        const length = Number(number());
        end({ words: new TextDecoder().decode(bytes.subarray(at, at + length)) });
      }
      if (variant === PROGRESS) {
        for (let field = 0; field < 6; field += 1) number(); // at, end, events, three percentiles
        if (bytes[at++] === 1) end({ traceHash: number().toString() });
      }
    };
  });
