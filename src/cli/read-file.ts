import { readFileSync, statSync } from 'node:fs';

/** What a shell puts for `<(…)`: it has opened it, and something writes to it. */
const OPENED = /^\/dev\/fd\/\d+$/;

/**
 * The text of a regular file, of standard input or of an open descriptor. Anything else is refused: reading a FIFO that
 * nobody writes to would wait for ever.
 * @throws an error with a `code` of node:fs; EISDIR for a directory, EFTYPE for what else is no regular file
 */
export function readFile(path: string): string {
  // By descriptor: Linux cannot open /dev/stdin anew where it is a socket (ENXIO), as it is under Node's own spawn.
  if (path === '/dev/stdin') return readFileSync(0, 'utf8');
  const stats = statSync(path);
  if (!stats.isFile() && !OPENED.test(path)) {
    const code = stats.isDirectory() ? 'EISDIR' : 'EFTYPE';
    throw Object.assign(new Error(`${code}: not a regular file: ${path}`), { code });
  }
  return readFileSync(path, 'utf8');
}
