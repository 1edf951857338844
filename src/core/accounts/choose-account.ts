import type { Millis } from '../scalars.ts';

/** An account that a request may use, as far as the choice depends on it. */
export interface AccountCandidate {
  /** The estimated wait for its limits. */
  readonly wait: Millis;
  /** When the client may probe the account, if a quarantine excludes the client; else −Infinity. */
  readonly probeAt: Millis;
  /** When the client may try an account that excludes others, although another is in service; undefined for an account in service. */
  readonly trialAt: Millis | undefined;
  /** The upstream rejected its credential for this very request. */
  readonly hasRejected: boolean;
  /** The last attempt of this request was throttled with it. */
  readonly hasThrottled: boolean;
  readonly inFlight: number;
  /** The ordinal of its last choice: lower is longer ago. */
  readonly lastUse: number;
}

/**
 * Chooses the account of a request, in this order: one whose probe or trial is due; in service, and not one that has already
 * rejected this request; the shortest wait; not the one that has just throttled it, whose shared limit may not show that yet; the fewest requests in
 * flight; the least recently used. Returns undefined if there is no candidate.
 */
export function chooseAccount<C extends AccountCandidate>(candidates: readonly C[], now: Millis): C | undefined {
  let best: C | undefined;
  for (const candidate of candidates) {
    if (best === undefined || isBetter(candidate, best, now)) best = candidate;
  }
  return best;
}

function isBetter(one: AccountCandidate, other: AccountCandidate, now: Millis): boolean {
  return (
    (rank(one, now) - rank(other, now) ||
      waitOf(one, now) - waitOf(other, now) ||
      Number(one.hasThrottled) - Number(other.hasThrottled) ||
      one.inFlight - other.inFlight ||
      one.lastUse - other.lastUse) < 0
  );
}

function rank({ probeAt, trialAt, wait, hasRejected }: AccountCandidate, now: Millis): number {
  if (hasRejected) return 3;
  if (probeAt === Number.NEGATIVE_INFINITY && trialAt === undefined) return 1;
  // Without a token the probe would be late, and another request may make it sooner.
  return (trialAt ?? probeAt) <= now && wait <= 0 ? 0 : 2;
}

/** How long the request would wait with this account: for its limits, or for its next probe. */
export function waitOf({ wait, probeAt }: Pick<AccountCandidate, 'wait' | 'probeAt'>, now: Millis): Millis {
  return Math.max(wait, probeAt - now, 0);
}
