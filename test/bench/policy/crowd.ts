import { randomFillSync } from 'node:crypto';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { Admission } from '../../../src/core/admission/ticket.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Millis, Outcome, PerSecond } from '../../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { UpstreamSettings } from '../../../src/store/memory-store.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';

export const UPSTREAM = 'payments';
export const REFS: readonly LimitRef[] = [{ upstream: UPSTREAM, nested: '', scope: 'upstream', key: '' }];

const ACCEPTED: Outcome = { kind: 'response', status: 200, hints: NO_HINTS, took: 0 };
/** Of a client's hash. */
const BYTES = 8;
const PATIENCE: Millis = 10_000;

/** The defaults, with a limit that is known beforehand, or none. */
export function settingsFor(rate: PerSecond | undefined, maxDepth = 10_000): UpstreamSettings {
  return {
    name: UPSTREAM,
    scope: 'upstream',
    rate: { initialRate: rate, maxRate: rate ?? Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
    queue: { maxWait: 1000, maxDepth },
    budget: { ratio: 0.2, burst: 10 },
  };
}

/**
 * Hashes of clients as the proxy has them: 16 hex digits, made anew for each request. Their bytes lie in one buffer, so
 * that a million names are nothing on the heap while what is remembered of them is measured.
 */
export class Names {
  readonly #digests: Buffer;

  constructor(clients: number) {
    this.#digests = randomFillSync(Buffer.alloc(BYTES * clients));
  }

  of(client: number): string {
    return this.#digests.toString('hex', BYTES * client, BYTES * (client + 1));
  }
}

/** A gate with many clients, and requests through it from their arrival to their leave, all in one go. */
export class Crowd {
  readonly store: MemoryStore;
  readonly gate: Gate;
  readonly names: Names;
  now: Millis = 1000;
  passed = 0;
  queued = 0;
  refused = 0;
  events = 0;
  readonly #gap: Millis;

  /** @param gap between two arrivals */
  constructor(names: Names, { clients, rate, gap }: { clients: number; rate: PerSecond | undefined; gap: Millis }) {
    const listen = (): void => {
      this.events += 1;
    };
    this.names = names;
    this.#gap = gap;
    this.store = new MemoryStore({
      upstreams: [settingsFor(rate)],
      maxTracked: clients,
      random: seededRandom(1),
      listen,
    });
    this.gate = new Gate(this.store, listen);
  }

  get tracked(): number {
    return this.store.clients.view(this.now).tracked;
  }

  /** As the proxy does: its key is made anew, and so is what settles it. */
  ticketOf(client: number): Ticket {
    const ticket: Ticket = new Ticket(UPSTREAM, this.names.of(client), 1, REFS, (admission, now) =>
      this.#told(ticket, admission, now),
    );
    return ticket;
  }

  /** One decision, and what is noted of what comes of it. */
  decide(ticket: Ticket): void {
    this.now += this.#gap;
    const { gate, now } = this;
    const wake = gate.nextWake();
    if (wake !== undefined && wake <= now) gate.wake(now);
    const admission = gate.arrive(ticket, now + PATIENCE, now);
    if (admission === undefined) this.queued += 1;
    else this.#told(ticket, admission, now);
  }

  #told(ticket: Ticket, admission: Admission, now: Millis): void {
    const { gate } = this;
    if (admission.kind === 'admitted') {
      this.passed += 1;
      gate.sent(ticket, now);
      gate.head(ticket, ACCEPTED, now);
      gate.end(ticket, now);
    } else this.refused += 1;
    gate.leave(ticket);
  }
}
