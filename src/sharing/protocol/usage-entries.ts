import type { Millis } from '../../core/exchange/attempt-outcome.ts';

export const GIVEN_BACK = 0;
export const SENT = 1;
export const ENDED = 2;
export const ACCEPTED = 3;
export const REJECTED = 4;
export const FAILED = 5;
export const QUOTA = 6;
export const STOP = 7;
export const REMEMBER = 8;
export const ABANDON = 9;
export const UNSPENT = 10;
export const EPOCH = 11;
export const QUOTA_SPENT = 12;
export const QUOTA_DISOWNED = 13;
export const ACCEPTED_OF = 14;
export const PROBED = 15;
export const PASSED_BY = 16;
export const BLOCKED = 17;

/** How many numbers each takes, its kind included; those of a source are the last. */
export const LENGTHS: readonly number[] = [1, 3, 2, 4, 15, 13, 10, 2, 3, 1, 2, 2, 6, 3, 12, 2, 2, 14];

/** Which of them are times. */
const TIMES: readonly (readonly number[])[] = [
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
];

/** NaN where something is not known. */
export const UNKNOWN = Number.NaN;

/** As a `HappeningLog` writes them: kinds, each followed by its numbers. */
export type Happenings = readonly number[] | Float64Array;

/** The same, by a clock that is ahead by so much. */
export function shiftTimes(numbers: Happenings, by: Millis): Happenings {
  const shifted = numbers.slice();
  for (let i = 0; i < numbers.length; i += LENGTHS[numbers[i] ?? 0] ?? 1) {
    for (const place of TIMES[numbers[i] ?? 0] ?? []) shifted[i + place] = (numbers[i + place] ?? 0) + by;
  }
  return shifted;
}
