import type { Millis } from '../../core/scalars.ts';

export const TOKEN_RETURNED = 0;
export const SENT = 1;
export const ENDED = 2;
export const ACCEPTED = 3;
export const REJECTED = 4;
export const FAILED = 5;
export const QUOTA = 6;
export const STOPPED = 7;
export const RATE_REMEMBERED = 8;
export const PROBE_ABANDONED = 9;
export const TOKEN_UNUSED = 10;
export const EPOCH_SEEN = 11;
export const QUOTA_SPENT = 12;
export const QUOTA_DISOWNED = 13;
export const ACCEPTED_FROM_SOURCE = 14;
export const PROBED = 15;
export const BLOCK_BYPASSED = 16;
export const BLOCKED = 17;
export const RESPONDED = 18;
export const ABANDONED = 19;

/** The flags of a failure, added up. */
export const OVERRUN = 1;
export const UNREACHABLE = 2;

/** The length of each kind of entry, with the kind itself. The attributes of a request come last. */
export const ENTRY_LENGTHS: readonly number[] = [1, 3, 2, 4, 15, 13, 10, 2, 3, 1, 2, 2, 6, 3, 12, 2, 2, 14, 2, 3];

/** The positions of times in each kind of entry. */
const ENTRY_TIMES: readonly (readonly number[])[] = [
  [],
  [2],
  [1],
  [1, 3],
  [1, 6],
  [1, 4],
  [7, 8],
  [1],
  [2],
  [],
  [1],
  [],
  [1, 5],
  [2],
  [1, 3],
  [1],
  [1],
  [2, 4, 5],
  [1],
  [1, 2],
];

/** Stands for undefined. */
export const UNKNOWN = Number.NaN;

/** Entries as `UsageLog` writes them: a kind, followed by its numbers. */
export type EncodedUsage = readonly number[] | Float64Array;

/** Returns the usage with all its times increased by `by`. */
export function shiftTimes(numbers: EncodedUsage, by: Millis): EncodedUsage {
  const shifted = numbers.slice();
  for (let i = 0; i < numbers.length; i += ENTRY_LENGTHS[numbers[i] ?? 0] ?? 1) {
    for (const at of ENTRY_TIMES[numbers[i] ?? 0] ?? []) shifted[i + at] = (numbers[i + at] ?? 0) + by;
  }
  return shifted;
}
