import type { AccountNotice } from '../core/accounts/account-notice.ts';
import type { ConnectionCounts } from '../core/admission/connection-slots.ts';
import type { EventSink } from '../core/events/proxy-events.ts';
import type { Random } from '../core/scalars.ts';
import type { ClientHold } from '../core/limits/client-holds.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Limit } from '../core/limits/limit.ts';
import type { Meter } from '../core/limits/meter.ts';
import type { UpstreamQuotasParts } from '../core/quota/calendar/upstream-quotas.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { UpstreamSettings } from './upstream-state.ts';

export interface MemoryStoreOptions {
  readonly upstreams: readonly UpstreamSettings[];
  /** The maximum number of clients that are remembered. */
  readonly maxTracked: number;
  /** The maximum number of limits of single clients or credentials; `maxTracked` when absent. */
  readonly maxLimits?: number;
  /** The maximum number of clients whose quotas are kept, at each upstream; `maxTracked` when absent. */
  readonly maxQuotaClients?: number;
  readonly random: Random;
  readonly listen: EventSink;
  /** The connections of an upstream, by its name; they are unbounded when absent. */
  readonly connections?: Pick<ReadonlyMap<string, ConnectionCounts>, 'get'>;
  /** Where the calendar quotas of upstreams are kept; in memory, by the gate's clock, when absent. */
  readonly quotas?: Omit<UpstreamQuotasParts, 'maxClients'>;
  /** Makes the meter of a limit; a `LocalMeter` for each when absent. */
  readonly makeMeter?: (ref: LimitRef, rate: RateSettings, random: Random) => Meter;
  /** Where other processes share the limits: called when a limit is made or forgotten, and when a client is held. */
  readonly sharingHooks?: SharingHooks;
  /** Hashes credentials of accounts, uncached, with the key of the client hashes; without it, accounts are not shared. */
  readonly hash?: (text: string) => string;
  /** The process that leases the tokens applies the rates that an operator pins, so this store does not. */
  readonly isPinnedElsewhere?: boolean;
}

/** What a store reports to the client of shared limits. */
export interface SharingHooks {
  onLimitCreated(limit: Limit): void;
  onLimitForgotten(limit: Limit): void;
  /** The store has new settings. Absent if the process that keeps the limits has them itself. */
  onSettingsChanged?(): void;
  /** A client has to wait, or its allowance was reduced, in whichever process it arrives. */
  onClientHeld(hold: ClientHold): void;
  /** The quarantine of an account has changed. Absent if each process keeps its own. */
  onAccountChanged?(notice: AccountNotice): void;
}
