import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { LeaseClient } from './lease-client.ts';
import type { LeaseRequest, LeaseResponse } from './replica-protocol.ts';

/** What a `LeaseClient` needs of its process. */
export interface LeaseClientParts {
  readonly replicaId: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Arranges that `wake` is called at `wakeAt`; called whenever `wakeAt` changes. */
  readonly schedule: (client: LeaseClient) => void;
  /** Calls the backend, which answers with `onResponse` or `onNoResponse`. */
  readonly call: (client: LeaseClient, request: LeaseRequest) => void;
  /**
   * Claims the first token of a limit of a client, credential or path, which costs the backend much less than a call. It answers
   * with `onClaimed` or `onNoResponse`, always after this has returned. Undefined if the backend has no claims.
   */
  readonly claim: ((client: LeaseClient) => void) | undefined;
  /** The number of queued requests that could go if they had a token. */
  readonly countTokensNeeded: (limit: Limit) => number;
  /** Tokens have arrived, or the terms have changed: the queue is to be served. */
  readonly onTokensSupplied: (limit: Limit, now: Millis) => void;
  /** The usage that this replica reported decreased the rate. */
  readonly onDecrease: (ref: LimitRef, decrease: LeaseResponse['decreases'][number]) => void;
  readonly onFallback: (client: LeaseClient, isInFallback: boolean) => void;
  /** Whether this client keeps calling, used or not, to find out when the backend is back. */
  readonly isReconnectProbe: (client: LeaseClient) => boolean;
}
