import { readFileSync, statSync } from 'node:fs';

/** The path that a shell passes for `<(…)`: an open descriptor. */
const OPEN_DESCRIPTOR = /^\/dev\/fd\/\d+$/;

/**
 * Reads a regular file, standard input or an open descriptor. Refuses anything else: reading a FIFO without a writer would
 * block forever.
 * @throws an error with a `code` of node:fs; EISDIR for a directory, EFTYPE for anything else that is not a regular file, EUTF16 for
 * text in UTF-16
 */
export function readFile(path: string): string {
  // By descriptor: Linux cannot open /dev/stdin if it is a socket (ENXIO), which it is under Node's spawn.
  if (path === '/dev/stdin') return decode(readFileSync(0));
  const stats = statSync(path);
  if (!stats.isFile() && !OPEN_DESCRIPTOR.test(path)) {
    const code = stats.isDirectory() ? 'EISDIR' : 'EFTYPE';
    throw Object.assign(new Error(`${code}: not a regular file: ${path}`), { code });
  }
  return decode(readFileSync(path));
}

/** Editors and PowerShell on Windows mark UTF-8 with a byte order mark, which is no part of a secret, or write UTF-16. */
function decode(bytes: Buffer): string {
  const mark = bytes.toString('hex', 0, 2);
  if (mark === 'fffe' || mark === 'feff') throw Object.assign(new Error('EUTF16: UTF-16 text'), { code: 'EUTF16' });
  return bytes.toString('utf8').replace(/^\uFEFF/, '');
}
