/** A small file system of its own, which can be filled without harm to others. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { atEnd } from './at-end.ts';

const BLOCK = 1024 * 1024;

/** Mounts a file system of this size at a new folder. False if this user may not mount one. */
export function mountOwnDisk(folder: string, size = '192m'): boolean {
  mkdirSync(folder);
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
  if (status !== 0) return false;
  const unmount = (): void => void spawnSync('umount', ['--lazy', folder], { stdio: 'ignore' });
  process.once('exit', unmount); // the program may be stopped
  atEnd(() => {
    process.off('exit', unmount);
    unmount();
  });
  return true;
}

/** Appends to a file until its disk is full. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'a');
  try {
    for (let size = BLOCK; size >= 512; size /= 2) {
      const bytes = Buffer.alloc(size);
      while (canWrite(file, bytes));
    }
  } finally {
    closeSync(file);
  }
}

function canWrite(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
