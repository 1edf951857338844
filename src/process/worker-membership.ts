import type { Registry } from 'prom-client';
import type { EndpointFailure } from '../core/events/gate-views.ts';
import type { EventSink } from '../core/events/proxy-events.ts';
import type { Gate } from '../core/admission/gate.ts';
import type { DeliveryInspection } from '../core/delivery/delivery-store.ts';
import type { OpenWriteLog } from '../core/idempotency/open-writes.ts';
import type { Clock } from '../core/scalars.ts';
import type { ProcessApi, UpstreamOverride } from '../admin/operations/process-api.ts';
import type { WriteKeys } from '../http/request/exchange-context.ts';
import type { WakeTimer } from '../http/wake-timer.ts';
import type { RemoteDeliveryStore } from '../sharing/deliveries/remote-delivery-store.ts';
import type { QuotaBinding, QuotaClient } from '../sharing/quotas/quota-client.ts';
import type { SharedInspections } from './sharing/limit-sharing.ts';
import type { LimitClient } from '../sharing/workers/limit-client.ts';

/** What a worker gets from its primary. */
export interface WorkerMembership {
  /** The number of this worker, from 1; never reused. */
  readonly worker: number;
  /** The name of all workers in Via, so that each of them detects a loop through another. */
  readonly instance: string;
  /** A clock that reads the same in all workers. */
  readonly clock: Clock;
  /** The client of the limits that all workers share. */
  readonly limitClient: LimitClient;
  /** The quotas of which the primary leases parts. */
  readonly quotaClient: QuotaClient;
  /** The keys of writes, which the primary keeps. */
  readonly writeKeys: WriteKeys;
  /** Undefined if open writes are not reported after the end of this process. */
  readonly openWrites: OpenWriteLog | undefined;
  /** The deliveries that the primary keeps; undefined if it keeps none. */
  readonly deliveries: RemoteDeliveryStore | undefined;
  /** The key of the hashes of clients. */
  readonly secret: string;
  /** The primary has it, and what follows. */
  readonly database?: undefined;
  readonly inspection?: undefined;
  readonly storedWrites?: undefined;
  /** The URL of the practice upstream in the primary, if there is one. */
  readonly practiceUrl: string | undefined;
  /** TLS ticket keys, shared so that a session can be resumed at any worker. */
  readonly ticketKeys: Buffer;
  /** Reports a failed attempt to the primary: see `LastFailures`. */
  readonly onFailure: (upstream: string, failure: EndpointFailure) => void;
  /** Called when nothing of the configuration before the last reload is left here. */
  readonly onSettled: () => void;
  /** Operator overrides from before this worker started. */
  readonly overrides: readonly UpstreamOverride[];
  /**
   * Exposes metrics and the process API to the primary, which merges those of all workers.
   * @param sharing what replicas share over Redis
   * @param deliveries undefined if there are none
   */
  readonly exposeToPrimary: (
    registry: Registry,
    api: ProcessApi,
    sharing: SharedInspections | undefined,
    deliveries: DeliveryInspection | undefined,
  ) => void;
}

/** Drops events about limits: the primary emits them once for all workers. */
export function withoutLimitEvents(listen: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'limit-state' && event.type !== 'cut') listen(event);
  };
}

/** For what limits and quotas are shared by: tokens and parts have arrived. */
export function createSupplyHandlers(
  gate: Gate,
  timer: WakeTimer,
): Pick<QuotaBinding, 'onTokensSupplied' | 'onQuotaSupplied'> {
  return {
    onTokensSupplied: (limit, now) => {
      gate.onTokensSupplied(limit, now);
      timer.rearm();
    },
    onQuotaSupplied: (quota, now) => {
      gate.clientQuotas.onSupplied(quota, now);
      timer.rearm();
    },
  };
}
