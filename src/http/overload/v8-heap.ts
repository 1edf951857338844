import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';

/** The young generation's part beside the old one where nobody sets either: V8 takes three semi-spaces of a 64th. */
const YOUNG_SHARE = 3 / 64;
const MIB = 1024 ** 2;

/**
 * Bytes that the old generation may grow to before this process ends for lack of memory. V8 tells the limit of both
 * generations together only; where `--max-old-space-size` is given, the young one comes on top of it.
 */
export function heapLimit(
  flags: readonly string[] = [...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/), ...process.execArgv],
): number {
  const given = flags.findLast((flag) => OLD_SPACE.test(flag));
  const mebibytes = OLD_SPACE.exec(given ?? '')?.[1];
  if (mebibytes !== undefined) return Number(mebibytes) * MIB;
  return getHeapStatistics().heap_size_limit / (1 + YOUNG_SHARE);
}

const OLD_SPACE = /^--max[-_]old[-_]space[-_]size=(\d+)$/;

/** Bytes of the old generation in use, and of what goes with it into its limit. */
export function heapUsed(): number {
  let used = 0;
  for (const { space_name, space_used_size } of getHeapSpaceStatistics()) {
    if (!space_name.startsWith('new_')) used += space_used_size;
  }
  return used;
}
