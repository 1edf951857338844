import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';

/** The default size of the young generation relative to the old: V8 uses three semi-spaces of 1/64. */
const YOUNG_SHARE = 3 / 64;
const MIB = 1024 ** 2;

/**
 * Maximum size of the old generation in bytes; beyond it the process runs out of memory and exits. V8 reports only the
 * limit of both generations together; with `--max-old-space-size` the young generation comes on top.
 */
export function oldSpaceLimit(
  flags: readonly string[] = [...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/), ...process.execArgv],
): number {
  const flag = flags.findLast((flag) => OLD_SPACE_FLAG.test(flag));
  const mebibytes = OLD_SPACE_FLAG.exec(flag ?? '')?.[1];
  if (mebibytes !== undefined) return Number(mebibytes) * MIB;
  return getHeapStatistics().heap_size_limit / (1 + YOUNG_SHARE);
}

const OLD_SPACE_FLAG = /^--max[-_]old[-_]space[-_]size=(\d+)$/;

/** Bytes in use that count towards the limit of the old generation. */
export function oldSpaceUsed(): number {
  let used = 0;
  for (const { space_name, space_used_size } of getHeapSpaceStatistics()) {
    if (!space_name.startsWith('new_')) used += space_used_size;
  }
  return used;
}
