/** A gate before an upstream of a few connections, in virtual time. */
import type { TideEvent } from '../../src/core/events/proxy-events.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import type { Admission } from '../../src/core/admission/ticket.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { Millis, Outcome } from '../../src/core/exchange/attempt-outcome.ts';
import type { UpstreamSettings } from '../../src/store/memory-store.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from './policy.ts';

export interface Guest {
  readonly client: string;
  readonly ticket: Ticket;
  /** Undefined while it waits. */
  told: Admission | undefined;
  /** When it was told. */
  at: Millis;
}

export class Connected {
  readonly gate: Gate;
  readonly events: TideEvent[] = [];
  /** In the order in which they were admitted. */
  readonly admitted: Guest[] = [];
  now: Millis = 0;
  busy = 0;
  readonly #refsOf: (client: string) => readonly LimitRef[];

  constructor(connections: number, upstream: Partial<UpstreamSettings> = {}) {
    const settings = upstreamSettings(upstream);
    const listen = (event: TideEvent): void => void this.events.push(event);
    const store = new MemoryStore({
      upstreams: [settings],
      maxTracked: 1000,
      random: () => 0.5,
      listen,
      freeConnections: new Map([['up', () => connections - this.busy]]),
    });
    this.gate = new Gate(store, listen);
    const { scope } = settings;
    this.#refsOf = (client) => (scope === 'upstream' ? [SHARED] : [{ upstream: 'up', nested: '', scope, key: client }]);
  }

  arrive(client: string, patience: Millis = 60_000): Guest {
    const ticket = new Ticket('up', client, 1, this.#refsOf(client), (admission, now) =>
      this.#tell(guest, admission, now),
    );
    const guest: Guest = { client, ticket, told: undefined, at: this.now };
    const admission = this.gate.arrive(ticket, this.now + patience, this.now);
    if (admission !== undefined) this.#tell(guest, admission, this.now);
    return guest;
  }

  arriveTimes(count: number, client: string): Guest[] {
    return Array.from({ length: count }, () => this.arrive(client));
  }

  /** It takes one of the connections. */
  send({ ticket }: Guest): void {
    this.gate.sent(ticket, this.now);
    this.busy += 1;
  }

  /** It is answered, and its connection is free again. */
  answer({ ticket }: Guest, outcome: Outcome = response(200)): void {
    this.gate.head(ticket, outcome, this.now);
    this.gate.end(ticket, this.now);
    this.gate.leave(ticket);
    this.vacate();
  }

  vacate(): void {
    this.busy -= 1;
    this.gate.vacated('up', this.now);
  }

  /** Time passes, and the gate is woken when it asks for it. */
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

  #tell(guest: Guest, admission: Admission, now: Millis): void {
    guest.told = admission;
    guest.at = now;
    if (admission.kind === 'admitted') this.admitted.push(guest);
  }
}
