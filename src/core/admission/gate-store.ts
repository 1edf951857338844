import type { Activity } from './active-clients.ts';
import type { QueueSettings } from './wait-estimate.ts';
import type { Backlog } from './queue-occupancy.ts';
import type { RetryBudget } from '../retry/retry-token-bucket.ts';
import type { ClientStore } from './client-allowance.ts';
import type { Limit } from '../limits/limit.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import type { Nests } from './address-groups.ts';
import type { Room } from './connection-slots.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';
import type { UntoldQuotas } from '../quota/unmetered-successes.ts';

/** What the gate keeps for one upstream. */
export interface Upstream {
  readonly name: string;
  /** As it is now. */
  queue: QueueSettings;
  readonly budget: RetryBudget;
  readonly activity: Activity;
  readonly nests: Nests;
  readonly untold: UntoldQuotas;
  /** Its connections; absent where they are not bounded here. */
  readonly room?: Room | undefined;
  /** Whether one of its limits is called so, `LimitRef.nested`; where absent, it has its own alone. */
  has?(nested: string): boolean;
  /** Requests that wait, at all of its limits and for room together. */
  readonly backlog: Backlog;
  /** Requests that were refused because as many waited as may, of all or of their address. */
  overflows: number;
}

/** Who remembers upstreams, limits and clients. Bounded. */
export interface Store {
  readonly clients: ClientStore;
  upstream(name: string): Upstream;
  upstreams(): Iterable<Upstream>;
  /** The limit, if it exists: those of a client or credential are made when they are first felt. */
  find(ref: LimitRef): Limit | undefined;
  make(ref: LimitRef): Limit;
  /** A client is to stay away from a limit, whatever process it comes to. @param key as of `LimitHolds` */
  holdAt(limit: Limit, key: string, until: Millis, now: Millis): void;
  limits(): Iterable<Limit>;
}
