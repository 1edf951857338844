import type { Activity } from './activity.ts';
import type { QueueSettings } from './admission.ts';
import type { Backlog } from './backlog.ts';
import type { RetryBudget } from './budget.ts';
import type { ClientStore } from './client.ts';
import type { Limit } from './limit.ts';
import type { LimitRef } from './limit-ref.ts';
import type { Nests } from './nests.ts';
import type { Room } from './room.ts';
import type { Millis } from './types.ts';
import type { UntoldQuotas } from './untold-quotas.ts';

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
