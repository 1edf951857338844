import { isIdempotentMethod, isSafeMethod } from '../http-semantics/methods.ts';
import type { Millis } from '../scalars.ts';

/** The facts about a request that the policy uses. */
export interface RequestFacts {
  readonly method: string;
  /** The request has an idempotency key that the upstream honours. */
  readonly keyed: boolean;
  /** How long the upstream remembers the key of such a request; absent if not known. */
  readonly keyTtl?: Millis | undefined;
  /** `Expect: 100-continue`: admitted before its body is read. */
  readonly expectsContinue: boolean;
  /** Attempts already made by another proxy in front (0 if not known): its retries are not multiplied. */
  readonly priorAttempts: number;
  /** How long the client waits for a result that is not ready, ≥ 0 (`Prefer: wait`, RFC 7240). Absent: no polling. */
  readonly preferredWait?: Millis;
  /** The configuration's classification of its path: a POST that only reads, or a request that is never sent twice. Absent: by method. */
  readonly replaySafety?: ReplaySafety | undefined;
}

/** `safe`: the request has no effect, whatever its method. `never`: it is not repeated, whatever its key. */
export type ReplaySafety = 'safe' | 'never';

type ReplayFacts = Pick<RequestFacts, 'method' | 'replaySafety'>;

/** True if the request has no effect, by its method or by its path. */
export function isSafe({ method, replaySafety }: ReplayFacts): boolean {
  return replaySafety === 'safe' || isSafeMethod(method);
}

/** True if the upstream can recognise a repeat only by the key. */
export function isNamedByKey({ keyed, method, replaySafety }: Pick<RequestFacts, 'keyed'> & ReplayFacts): boolean {
  return keyed && replaySafety !== 'safe' && !isIdempotentMethod(method);
}

/**
 * True if the request may be sent again to any endpoint, whatever the outcome of an attempt.
 * @param hasSharedKey it has an idempotency key, in a header or in its body, and all endpoints know the keys of each other
 */
export function isRepeatable({ method, replaySafety }: ReplayFacts, hasSharedKey: boolean): boolean {
  return replaySafety !== 'never' && (replaySafety === 'safe' || hasSharedKey || isIdempotentMethod(method));
}
