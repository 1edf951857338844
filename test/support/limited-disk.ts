import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { fillDisk, mountOwnDisk } from './own-disk.ts';

/** A disk that a test fills. */
export interface LimitedDisk {
  readonly folder: string;
  /** May be called again: SQLite may have found room meanwhile. @param pid of the process that keeps the database */
  readonly fill: (pid: number) => void;
  readonly makeRoom: (pid: number) => void;
}

/** A file system of its own or, for a user who may not mount one, a limit on the size of the files of the process. */
export function openLimitedDisk(): LimitedDisk {
  const parent = mkdtempSync(join(tmpdir(), 'tidegate-disk-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, 'disk');
  const filler = join(folder, 'filler');
  if (mountOwnDisk(folder, '8m')) {
    return { folder, fill: () => fillDisk(filler), makeRoom: () => rmSync(filler) };
  }
  const limitFiles = (pid: number, bytes: number | 'unlimited'): void => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
    if (status !== 0) throw new Error(`prlimit: ${stderr.toString()}`);
  };
  return {
    folder,
    fill: (pid) => limitFiles(pid, statSync(join(folder, 'state.db-wal')).size),
    makeRoom: (pid) => limitFiles(pid, 'unlimited'),
  };
}
