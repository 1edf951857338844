import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { randomFillSync } from 'node:crypto';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';

export const UPSTREAM = 'payments';
export const REFS: readonly LimitRef[] = [{ upstream: UPSTREAM, nested: '', scope: 'upstream', key: '' }];

const ACCEPTED: AttemptOutcome = { kind: 'response', status: 200, hints: NO_HINTS, took: 0 };
/** Length of a client's hash. */
const BYTES = 8;
const MAX_WAIT: Millis = 10_000;

/** The default settings with a fixed limit, or without one. */
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
 * Client hashes like the proxy's: 16 hex digits, created for each request. Their bytes are in one buffer, so that a million
 * names take no heap while the memory of tracked clients is measured.
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

/** A gate with many clients, which runs requests synchronously from arrival to admission. */
export class ClientPopulation {
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

  /** Creates a ticket with a new key string and callback, as the proxy does. */
  ticketOf(client: number): Ticket {
    const ticket: Ticket = new Ticket(UPSTREAM, this.names.of(client), 1, REFS, (admission, now) =>
      this.#onAdmission(ticket, admission, now),
    );
    return ticket;
  }

  /** Makes one decision and records its outcome. */
  decide(ticket: Ticket): void {
    this.now += this.#gap;
    const { gate, now } = this;
    const wake = gate.nextWake();
    if (wake !== undefined && wake <= now) gate.wake(now);
    const admission = gate.requestAdmission(ticket, now + MAX_WAIT, now);
    if (admission === undefined) this.queued += 1;
    else this.#onAdmission(ticket, admission, now);
  }

  #onAdmission(ticket: Ticket, admission: AdmissionResult, now: Millis): void {
    const { gate } = this;
    if (admission.kind === 'admitted') {
      this.passed += 1;
      gate.onSent(ticket, now);
      gate.onOutcome(ticket, ACCEPTED, now);
      gate.onAttemptEnd(ticket, now);
    } else this.refused += 1;
    gate.onExchangeEnd(ticket);
  }
}
