import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { describeFileError } from '../../../config/load/substitute.ts';
import { suggest } from '../../../config/values/suggest.ts';
import type { LogFormat } from './log-format.ts';
import { chooseLogFormat } from './log-format.ts';

/** Magic numbers of compressed files. */
const COMPRESSED_FORMATS = [
  { name: 'gzip', unpack: 'gunzip -k', begins: [0x1f, 0x8b] },
  { name: 'zstd', unpack: 'unzstd', begins: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: 'xz', unpack: 'unxz -k', begins: [0xfd, 0x37, 0x7a] },
  { name: 'bzip2', unpack: 'bunzip2 -k', begins: [0x42, 0x5a, 0x68] },
  { name: 'zip', unpack: 'unzip', begins: [0x50, 0x4b, 0x03, 0x04] },
];
const PROBE_BYTES = 64 * 1024;

/** Detects the format of the log at a path. @returns an error in one line that begins with the path */
export function detectLogFormat(path: string): LogFormat | { readonly message: string } {
  if (path === '-') return { message: 'standard input cannot be read twice, as a log is: name a file' };
  let beginning: Buffer;
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return { message: `${path}: is a directory; name a file in it` };
    // Checked before opening: opening a pipe without a writer would block.
    if (!stats.isFile()) {
      return { message: `${path}: is not a regular file, which a log must be, because it is read twice` };
    }
    if (stats.size === 0) return { message: `${path}: is empty` };
    beginning = readBeginning(path);
  } catch (error) {
    return { message: `${path} cannot be read: ${describeFileError(error)}${suggestFile(path)}` };
  }
  const compression = COMPRESSED_FORMATS.find(({ begins }) => begins.every((byte, i) => beginning[i] === byte));
  if (compression !== undefined) {
    return { message: `${path}: is compressed (${compression.name}): ${compression.unpack} ${path} decompresses it` };
  }
  if (/^(?:\ufffe|\ufeff)/.test(beginning.toString('utf16le', 0, 2))) {
    return { message: `${path}: is UTF-16: convert it with iconv -f UTF-16 -t UTF-8 ${path}` };
  }
  if (beginning.includes(0)) return { message: `${path}: is binary; a log is JSON lines or CSV, or an access log` };
  const [first = '', second = ''] = beginning.toString('utf8').split('\n', 2);
  if (first.trim() === '') {
    return { message: `${path}:1: is empty; a log begins with a request or a CSV header` };
  }
  const format = chooseLogFormat(first.trim(), second.trim());
  return 'message' in format ? { message: `${path}:1: ${format.message}` } : format;
}

function readBeginning(path: string): Buffer {
  const descriptor = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(PROBE_BYTES);
    return buffer.subarray(0, readSync(descriptor, buffer, 0, PROBE_BYTES, 0));
  } finally {
    closeSync(descriptor);
  }
}

/** A file in the same folder with a similar name. */
function suggestFile(path: string): string {
  try {
    const near = suggest(basename(path), readdirSync(dirname(path)));
    return near === undefined ? '' : ` (is it ${near}?)`;
  } catch {
    return '';
  }
}
