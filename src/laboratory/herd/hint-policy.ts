import { formatRetryAfter } from '../../core/hints/format-retry-after.ts';
import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import { toRetryAfterSeconds } from '../../simulator/upstream/hint-style.ts';

export const HINT_POLICIES = [
  'none',
  'constant',
  'full-jitter',
  'slots',
  'slots-in-seconds',
  'slots-and-queue',
] as const;

/** How a refusal says when to return. */
export type HintPolicyName = (typeof HINT_POLICIES)[number];

/** What is known when a request is refused. */
export interface HintContext {
  readonly now: Millis;
  /** Time until another request would have passed, in ms. */
  readonly wait: Millis;
  /** Clients not served yet. */
  readonly waiting: number;
}

/** @returns the hinted wait in ms; 0 without a hint */
export type HintPolicy = (refused: HintContext, random: Random) => Millis;

/** One-line summaries. */
export const HINT_SUMMARIES: Readonly<Record<HintPolicyName, string>> = {
  none: 'nothing',
  constant: 'Retry-After: the wait until one more request would pass, in whole seconds; the same for all',
  'full-jitter': 'a random wait, up to the time that the limit needs to serve all waiting clients',
  slots: 'a slot of its own for each client, exact to the millisecond',
  'slots-in-seconds': 'the same in whole seconds, rounded at random, because Retry-After has no fractions',
  'slots-and-queue': 'the same, and a returning client waits in a queue; this is what Tidegate does',
};

/** @param rate the limit's rate, which `full-jitter` and `slots` use */
export function makeHintPolicy(name: HintPolicyName, rate: PerSecond): HintPolicy {
  const spacing = 1000 / rate;
  switch (name) {
    case 'none':
      return () => 0;
    case 'constant':
      return ({ wait }) => 1000 * toRetryAfterSeconds(wait);
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

/** Reserves the next free slot. */
function reserveSlots(spacing: Millis): HintPolicy {
  let reservedUntil = 0;
  return ({ now, wait }) => {
    reservedUntil = Math.max(reservedUntil + spacing, now + wait);
    return reservedUntil - now;
  };
}
