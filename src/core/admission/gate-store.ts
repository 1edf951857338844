import type { AccountPool } from '../accounts/account-pool.ts';
import type { ActiveClients } from './active-clients.ts';
import type { QueueSettings } from '../limits/longest-wait.ts';
import type { QueueOccupancy } from './queue-occupancy.ts';
import type { RetryTokenBucket } from '../retry/retry-token-bucket.ts';
import type { ClientStore } from './client-allowance.ts';
import type { Limit } from '../limits/limit.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import type { AddressGroups } from './address-groups.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import type { Millis } from '../scalars.ts';
import type { UpstreamQuotas } from '../quota/calendar/upstream-quotas.ts';
import type { ClassQuotas } from '../quota/clients/class-quotas.ts';
import type { UnmeteredSuccesses } from '../quota/unmetered-successes.ts';

/** The state that the gate keeps for one upstream. */
export interface GateUpstream {
  readonly name: string;
  /** Changes with the configuration. */
  queue: QueueSettings;
  readonly retryBudget: RetryTokenBucket;
  readonly activeClients: ActiveClients;
  readonly addressGroups: AddressGroups;
  readonly unmeteredSuccesses: UnmeteredSuccesses;
  /** Absent if none is configured. May change with the configuration. */
  readonly quotas?: UpstreamQuotas | undefined;
  /** Absent if no class of clients has quotas. */
  readonly classQuotas?: ClassQuotas | undefined;
  /** Undefined if clients use their own credentials. May change with the configuration. */
  readonly accounts?: AccountPool | undefined;
  /** Absent if connections are not bounded here. */
  readonly connectionSlots?: ConnectionSlots | undefined;
  /** Absent if it has only its own limit. May change with the configuration. */
  readonly hasNestedLimits?: boolean;
  /** Whether it has a nested limit of this name. Absent if it has only its own limit. */
  hasNestedLimit?(nested: string): boolean;
  /** Queued requests, at all of its limits and for connections. */
  readonly queueOccupancy: QueueOccupancy;
  /** The number of requests refused because the queue was full, for all or for their address. */
  queueOverflows: number;
}

/** Keeps the state of upstreams, limits and clients. Bounded. */
export interface GateStore {
  readonly clients: ClientStore;
  upstream(name: string): GateUpstream;
  /** Whether the configuration has the upstream: a reload may have removed it. */
  has(upstream: string): boolean;
  upstreams(): Iterable<GateUpstream>;
  /** Returns the limit if it exists. A limit of a client or credential is created at its first rejection. */
  findLimit(ref: LimitRef): Limit | undefined;
  findOrCreateLimit(ref: LimitRef): Limit;
  /** Holds a client at a limit, in all processes. @param key see `ClientHolds.add` */
  holdClientAt(limit: Limit, key: string, until: Millis, now: Millis): void;
  limits(): Iterable<Limit>;
}
