import type { CostSettlement } from '../cost/cost-settlement.ts';
import type { Gate } from './gate.ts';
import type { RetryAdmission } from './retry-admission.ts';
import { ADMITTED, type AdmissionResult } from './gate-decision.ts';
import type { Ticket } from './ticket.ts';
import type { UpstreamConnections } from './upstream-connections.ts';
import { CounterMap } from '../collections/counter-map.ts';
import type { Millis } from '../scalars.ts';

/** The part of a gate that an exchange uses. */
export interface ExchangeGate
  extends Pick<
    Gate,
    | 'requestAdmission'
    | 'onSent'
    | 'onGranted'
    | 'onOutcome'
    | 'onAttemptEnd'
    | 'cancel'
    | 'onExchangeEnd'
    | 'decisionDetails'
  > {
  readonly retries: Pick<
    RetryAdmission,
    'reserve' | 'beginPoll' | 'cancel' | 'retryAfterRejection' | 'findOtherAccount'
  >;
  readonly connections: Pick<UpstreamConnections, 'onClaimed' | 'onReleased'>;
  readonly costs: Pick<CostSettlement, 'settle' | 'applyBucket'>;
}

/** Connections of bypassing requests count towards no client's share. */
const BYPASS_KEY = '';

/** The bound on bypassing requests of one address: a quarter of the connections, but at least four. */
const ADDRESS_SHARE = 1 / 4;
const MIN_PER_ADDRESS = 4;
const BYPASS_RETRY_AFTER: Millis = 1000;

/**
 * A gate for requests that no limit applies to. It admits all of them and learns nothing. It counts their connections and
 * bounds those of one address, because these requests skip the queue and so precede all that wait in it. It allows a retry
 * only if that is immediate and uses no budget.
 */
export class BypassGate implements ExchangeGate {
  readonly #gate: Gate;
  readonly retries: ExchangeGate['retries'];
  readonly connections: ExchangeGate['connections'];
  readonly costs: ExchangeGate['costs'] = { settle: () => false, applyBucket: () => undefined };
  readonly #admitted = new Set<Ticket>();
  readonly #activeByAddress = new CounterMap();

  constructor(gate: Gate) {
    this.#gate = gate;
    this.retries = {
      /** Such a retry follows an attempt on a stale connection. */
      reserve: (_ticket, { delay, usesBudget }) => (usesBudget || delay > 0 ? 'attempts_exhausted' : undefined),
      beginPoll: (ticket) => this.onExchangeEnd(ticket),
      cancel: () => undefined,
      findOtherAccount: () => undefined,
      retryAfterRejection: ({ mode }, atLeast) =>
        mode === 'enforce' && atLeast !== undefined ? 1000 * Math.ceil(atLeast / 1000) : undefined,
    };
    this.connections = {
      onClaimed: (upstream) => gate.connections.onClaimed(upstream, BYPASS_KEY),
      onReleased: (upstream, _fairnessKey, took, isCutShort) =>
        gate.connections.onReleased(upstream, BYPASS_KEY, took, isCutShort),
    };
  }

  requestAdmission(ticket: Ticket): AdmissionResult {
    if (this.#admitted.has(ticket)) return ADMITTED;
    const key = addressKey(ticket);
    const connections = this.#gate.connections.capacity(ticket.upstream) ?? Number.POSITIVE_INFINITY;
    const maxActive = Math.max(MIN_PER_ADDRESS, ADDRESS_SHARE * connections);
    if (ticket.mode === 'enforce' && this.#activeByAddress.count(key) >= maxActive) {
      return { kind: 'refused', why: 'queue_full', retryAfterMs: BYPASS_RETRY_AFTER };
    }
    this.#admitted.add(ticket);
    this.#activeByAddress.increment(key);
    return ADMITTED;
  }

  onSent(): void {}
  onGranted(): void {}
  onOutcome(): undefined {}
  onAttemptEnd(): void {}
  cancel(): void {}

  onExchangeEnd(ticket: Ticket): void {
    if (this.#admitted.delete(ticket)) this.#activeByAddress.decrement(addressKey(ticket));
  }

  decisionDetails(ticket: Ticket, now: Millis): ReturnType<Gate['decisionDetails']> {
    return this.#gate.decisionDetails(ticket, now);
  }
}

function addressKey({ upstream, fairnessKey }: Ticket): string {
  return `${upstream}\0${fairnessKey}`;
}
