import { openSync, readFileSync, readSync, closeSync, renameSync } from 'node:fs';

/**
 * Moves the state file of an earlier version out of the way of a database of the same name.
 * @returns the learned state in it; undefined if the file is none, or does not exist
 */
export function takeStateFile(file: string): string | undefined {
  if (firstByteOf(file) !== '{') return undefined;
  const text = readFileSync(file, 'utf8');
  renameSync(file, `${file}.json`);
  return text;
}

function firstByteOf(file: string): string | undefined {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch {
    return undefined; // the database reports why
  }
  try {
    const byte = Buffer.alloc(1);
    return readSync(handle, byte) === 0 ? undefined : byte.toString('latin1');
  } finally {
    closeSync(handle);
  }
}
