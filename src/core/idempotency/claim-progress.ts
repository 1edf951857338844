import type { Millis } from '../scalars.ts';
import type { KeyRecord } from './key-record.ts';
import type { WriteOutcome } from './write-outcome.ts';

/** What a claim has done so far. Data only, because processes that share keys store it. */
export interface ClaimProgress {
  /** `shared`: several requests may use the key at a time (`concurrent: pass`). */
  state: 'new' | 'waiting' | 'held' | 'shared' | 'over';
  /** What was known before this exchange. */
  record: KeyRecord | undefined;
  firstSentAt: Millis | undefined;
  /** The endpoint of the write at the end of the claim. */
  endpoint: string | undefined;
  /** The response to the write was forwarded, and has not been cut so far. */
  isDelivered: boolean;
  /** That response is still being sent. */
  isResponding: boolean;
  /** That response is final: it settles whether the write took effect. */
  isFinal: boolean;
  /** An attempt may have taken effect, and no later one was answered. */
  mayHaveTakenEffect: boolean;
  /** Bytes of an attempt may have reached the upstream. */
  hasReached: boolean;
  /** What the last attempt says about the write. */
  last: WriteOutcome | undefined;
}

export function newClaimProgress(): ClaimProgress {
  return {
    ...{ state: 'new', record: undefined, firstSentAt: undefined, endpoint: undefined, last: undefined },
    ...{ isDelivered: false, isResponding: false, isFinal: false, mayHaveTakenEffect: false, hasReached: false },
  };
}
