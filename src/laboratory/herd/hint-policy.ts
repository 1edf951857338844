import { formatRetryAfter } from '../../core/hints/read-hints.ts';
import type { Millis, PerSecond, Random } from '../../core/exchange/attempt-outcome.ts';
import { waitSeconds } from '../../simulator/upstream/hint-style.ts';

export const HINT_POLICIES = [
  'none',
  'constant',
  'full-jitter',
  'slots',
  'slots-in-seconds',
  'slots-and-queue',
] as const;

/** What a refusal says of when to come back. */
export type HintPolicyName = (typeof HINT_POLICIES)[number];

/** What the refuser knows when it speaks. */
export interface Refused {
  readonly now: Millis;
  /** Until one more would have passed. */
  readonly wait: Millis;
  /** How many are still to be served. */
  readonly waiting: number;
}

/** @returns how long to wait; 0 where nothing is said */
export type HintPolicy = (refused: Refused, random: Random) => Millis;

/** What each says, in a line. */
export const HINT_SUMMARIES: Readonly<Record<HintPolicyName, string>> = {
  none: 'nothing',
  constant: 'Retry-After: when the next request would pass, in whole seconds; the same to all',
  'full-jitter': 'anything up to the time in which the limit could serve all who wait',
  slots: 'to each a place of its own in the time to come, to the millisecond',
  'slots-in-seconds': 'the same, as Retry-After can say it: whole seconds, rounded at random',
  'slots-and-queue': 'the same, and who comes back waits in a queue for its turn: what Tidegate does',
};

/** @param rate of the limit: what `full-jitter` and `slots` reckon with */
export function makeHintPolicy(name: HintPolicyName, rate: PerSecond): HintPolicy {
  const spacing = 1000 / rate;
  switch (name) {
    case 'none':
      return () => 0;
    case 'constant':
      return ({ wait }) => 1000 * waitSeconds(wait);
    case 'full-jitter':
      return ({ waiting }, random) => random() * waiting * spacing;
    case 'slots':
      return reserveSlots(spacing);
    case 'slots-in-seconds':
    case 'slots-and-queue': {
      const reserve = reserveSlots(spacing);
      return (refused, random) => 1000 * Number(formatRetryAfter(reserve(refused, random), random));
    }
  }
}

/** The next place that nobody has been promised. */
function reserveSlots(spacing: Millis): HintPolicy {
  let promised = 0;
  return ({ now, wait }) => {
    promised = Math.max(promised + spacing, now + wait);
    return promised - now;
  };
}
