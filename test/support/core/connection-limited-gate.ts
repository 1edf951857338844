/** A gate before an upstream of a few connections, in virtual time. */
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { AdmissionCallback, AdmissionResult, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from './policy-builders.ts';

export interface WaitingRequest {
  readonly client: string;
  readonly ticket: Ticket;
  /** Undefined while it waits. */
  admission: AdmissionResult | undefined;
  /** When the result arrived. */
  at: Millis;
}

export class ConnectionLimitedGate {
  readonly gate: Gate;
  readonly events: ProxyEvent[] = [];
  /** In the order in which they were admitted. */
  readonly admitted: WaitingRequest[] = [];
  now: Millis = 0;
  busy = 0;
  /** Busy connections whose clients have stalled. */
  stalled = 0;
  /** Whether requests that are sent and answered count as attempts of their clients. */
  tracksAttempts = false;
  readonly #refsOf: (client: string) => readonly LimitRef[];

  constructor(connections: number, upstream: Partial<UpstreamSettings> = {}) {
    const settings = upstreamSettings(upstream);
    const listen = (event: ProxyEvent): void => void this.events.push(event);
    const store = new MemoryStore({
      upstreams: [settings],
      maxTracked: 1000,
      random: () => 0.5,
      listen,
      connections: new Map([
        [
          'up',
          {
            totalConnections: () => connections,
            freeConnections: () => connections - this.busy,
            stalled: () => this.stalled,
          },
        ],
      ]),
    });
    this.gate = new Gate(store, listen);
    const { scope } = settings;
    this.#refsOf = (client) => (scope === 'upstream' ? [SHARED] : [{ upstream: 'up', nested: '', scope, key: client }]);
  }

  arrive(client: string, maxWait: Millis = 60_000, mode: EnforcementMode = 'enforce'): WaitingRequest {
    const settle: AdmissionCallback = (admission, now) => this.#record(request, admission, now);
    const ticket = new Ticket('up', client, 1, this.#refsOf(client), settle, { mode });
    const request: WaitingRequest = { client, ticket, admission: undefined, at: this.now };
    const admission = this.gate.requestAdmission(ticket, this.now + maxWait, this.now);
    if (admission !== undefined) this.#record(request, admission, this.now);
    return request;
  }

  arriveTimes(count: number, client: string): WaitingRequest[] {
    return Array.from({ length: count }, () => this.arrive(client));
  }

  /** Sends the request on a free connection. */
  send({ ticket }: WaitingRequest): void {
    this.gate.onSent(ticket, this.now);
    if (this.tracksAttempts) this.gate.connections.onClaimed('up', ticket.fairnessKey);
    this.busy += 1;
  }

  /** Answers the request and frees its connection. */
  answer({ ticket }: WaitingRequest, outcome: AttemptOutcome = response(200)): void {
    this.gate.onOutcome(ticket, outcome, this.now);
    this.gate.onAttemptEnd(ticket, this.now);
    if (this.tracksAttempts) this.gate.connections.onReleased('up', ticket.fairnessKey, this.now - ticket.sentAt);
    this.gate.onExchangeEnd(ticket);
    this.vacate();
  }

  vacate(): void {
    this.busy -= 1;
    this.gate.connections.onFree('up', this.now);
  }

  /** Advances time, and wakes the gate when it is due. */
  pass(time: Millis): void {
    const end = this.now + time;
    for (let at = this.gate.nextWake(); at !== undefined && at <= end; at = this.gate.nextWake()) {
      if (at <= this.now && at === this.#wokeAt) throw new Error(`woken again and again at ${at} ms`);
      this.#wokeAt = at;
      this.now = Math.max(this.now, at);
      this.gate.wake(this.now);
    }
    this.now = end;
  }

  #wokeAt = Number.NaN;

  #record(request: WaitingRequest, admission: AdmissionResult, now: Millis): void {
    request.admission = admission;
    request.at = now;
    if (admission.kind === 'admitted') this.admitted.push(request);
  }
}
