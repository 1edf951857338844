import { closeSync, fsyncSync, openSync, rmSync, statSync, statfsSync, writeSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { describeFileError } from '../../config/load/substitute.ts';
import type { StateConfig } from '../../config/schema/config-schema.ts';
import { formatBytes } from '../format-bytes.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, warning } from './doctor-finding.ts';

/** A database with its write-ahead log grows by some megabytes at once. */
const LOW_SPACE = 64 * 1024 ** 2;
const PROBE_BYTES = 4096;

/**
 * Whether this user can write the state file and its folder, and how much space is left there. Writes a file there and removes it.
 * @param place of `state.file`
 */
export function checkStateFile(state: StateConfig, place: string, user: string): DoctorFinding[] {
  if (state.store === 'redis' || state.file === undefined) {
    return [ok('state', 'state', state.store === 'redis' ? 'in Redis' : 'in memory only: a restart begins without it')];
  }
  const file = resolve(state.file);
  const folder = dirname(file);
  const unwritable = tryToWrite(file, folder);
  if (unwritable !== undefined) {
    const { error, path } = unwritable;
    return [
      problem(
        'state',
        `${place} (${path})`,
        `cannot be written: ${describeFileError(error)}`,
        remedyOf(error, user, folder),
      ),
    ];
  }
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free < LOW_SPACE) {
    const meaning = `only ${formatBytes(free)} are free: when the disk is full, writes with idempotency keys are refused`;
    return [
      warning('state', `${place} (${folder})`, meaning, `Make room in ${folder}, or set a file on a larger disk.`),
    ];
  }
  return [ok('state', `${place} (${file})`, `writable, ${formatBytes(free)} free`)];
}

function tryToWrite(file: string, folder: string): { readonly error: unknown; readonly path: string } | undefined {
  const probe = join(folder, `.${basename(file)}.doctor-${process.pid}`);
  try {
    const descriptor = openSync(probe, 'wx', 0o600);
    try {
      writeSync(descriptor, Buffer.alloc(PROBE_BYTES));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
      rmSync(probe);
    }
  } catch (error) {
    return { error, path: folder };
  }
  try {
    if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
    closeSync(openSync(file, 'r+'));
    return undefined;
  } catch (error) {
    return { error, path: file };
  }
}

function remedyOf(error: unknown, user: string, folder: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `Create the folder: install -d -m 700 -o ${user} ${folder}`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `Make room in ${folder} (df -h shows the disks), or set a file on a larger disk.`;
    case 'EROFS':
      return 'Set a file on a disk that is mounted for writing; in a unit of systemd, StateDirectory= or ReadWritePaths= allows a folder.';
    case 'EISDIR':
      return 'Set the path of a file, not that of a folder.';
    default:
      return `Let the user ${user} write there: chown ${user} ${folder}`;
  }
}
