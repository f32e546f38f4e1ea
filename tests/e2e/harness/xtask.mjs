// The project's own tool, as the tests use it: to serve the page, and to ask it things.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

// `cargo xtask test` says where the tool and the page are; by hand, the usual ones are meant.
const [program, ...first] = process.env.XTASK ? [process.env.XTASK] : ['cargo', 'xtask'];
const built = ['--no-build', '--dist', process.env.DIST ?? 'dist'];

/** Serves the built page below the path `under`: gives its address and a function that stops it. */
export async function serve({ under = '/' } = {}) {
  const server = spawn(program, [...first, 'serve', ...built, '--port', '0', '--under', under], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = async () => {
    if (server.exitCode === null && server.kill()) await once(server, 'exit');
  };
  for await (const line of server.stdout) {
    const address = /http:\S+/.exec(line)?.[0];
    if (address) return { address, stop };
  }
  throw new Error('the server ended without saying its address');
}

/** The files that the first visit loads, as the size budget counts them. */
export async function firstVisit() {
  // Above the budget it fails, after printing: not what this is about.
  const printed = await new Promise((resolve) => {
    execFile(program, [...first, 'size', ...built, '--json'], { cwd: root }, (_, out) => resolve(out));
  });
  return JSON.parse(printed).map(({ file }) => file);
}
