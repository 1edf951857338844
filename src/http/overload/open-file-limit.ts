import { readFileSync } from 'node:fs';

/** How many files and sockets this process may have open; undefined where the system does not say so in a file. */
export function descriptorLimit(path = '/proc/self/limits'): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(path, 'utf8'))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
