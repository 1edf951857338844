import { readFileSync } from 'node:fs';

/** The limit of open files and sockets of this process; undefined if the system has no /proc. */
export function openFileLimit(path = '/proc/self/limits'): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(path, 'utf8'))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
