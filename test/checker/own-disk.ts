import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { atEnd } from '../support/at-end.ts';

const SIZE = '192m';

/** Mounts a small file system at a new folder. False if this user may not mount one. */
export function mountOwnDisk(folder: string): boolean {
  mkdirSync(folder);
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder], { stdio: 'ignore' });
  if (status !== 0) return false;
  const unmount = (): void => void spawnSync('umount', ['--lazy', folder], { stdio: 'ignore' });
  process.once('exit', unmount); // the checker may be stopped
  atEnd(() => {
    process.off('exit', unmount);
    unmount();
  });
  return true;
}
