import type { Gate } from './gate.ts';
import type { Retry } from '../retry/choose-retry.ts';
import type { Admission, Ticket } from './ticket.ts';
import { Tally } from '../collections/counter-map.ts';
import { ADMITTED } from './ticket.ts';
import type { Millis, RetryEnd } from '../exchange/attempt-outcome.ts';

/** What an exchange asks of a gate, and tells it. */
export type ExchangeGate = Pick<
  Gate,
  | 'arrive'
  | 'sent'
  | 'granted'
  | 'head'
  | 'end'
  | 'begin'
  | 'over'
  | 'cancel'
  | 'leave'
  | 'reserve'
  | 'release'
  | 'comeBack'
  | 'grounds'
>;

/** Connections that go through an open gate are in no client's share. */
const HOLDER = '';

/** What one address may have under way here: a quarter of the connections, and at least so many. */
const PART = 1 / 4;
const LEAST = 4;
const AGAIN: Millis = 1000;

/**
 * A gate that lets everything pass and learns nothing: for requests that no limit concerns. It counts the connections that
 * they take, which are taken all the same, and bounds those of one address: they wait in no queue of the gate, and so before all
 * who do. A retry is made only where it costs nothing.
 */
export class OpenGate implements ExchangeGate {
  readonly #gate: Gate;
  readonly #admitted = new Set<Ticket>();
  readonly #underWay = new Tally();

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  arrive(ticket: Ticket): Admission {
    if (this.#admitted.has(ticket)) return ADMITTED;
    const key = keyOf(ticket);
    const connections = this.#gate.connectionsTo(ticket.upstream) ?? Number.POSITIVE_INFINITY;
    const most = Math.max(LEAST, PART * connections);
    if (this.#gate.mode === 'enforce' && this.#underWay.of(key) >= most) {
      return { kind: 'refused', why: 'queue_full', retryAfter: AGAIN };
    }
    this.#admitted.add(ticket);
    this.#underWay.add(key);
    return ADMITTED;
  }

  sent(): void {}
  granted(): void {}
  head(): void {}
  end(): void {}
  cancel(): void {}

  leave(ticket: Ticket): void {
    if (this.#admitted.delete(ticket)) this.#underWay.remove(keyOf(ticket));
  }

  release(): void {}

  begin(upstream: string): void {
    this.#gate.begin(upstream, HOLDER);
  }

  over(upstream: string, _holder: string, took: Millis): void {
    this.#gate.over(upstream, HOLDER, took);
  }

  /** At once and for free, as after a connection that was just being closed. */
  reserve(_ticket: Ticket, { delay, charged }: Pick<Retry, 'delay' | 'charged'>): RetryEnd | undefined {
    return charged || delay > 0 ? 'attempts_exhausted' : undefined;
  }

  comeBack(_ticket: Ticket, atLeast: Millis): Millis | undefined {
    return this.#gate.mode === 'enforce' ? 1000 * Math.ceil(atLeast / 1000) : undefined;
  }

  grounds(ticket: Ticket, now: Millis): ReturnType<Gate['grounds']> {
    return this.#gate.grounds(ticket, now);
  }
}

function keyOf({ upstream, holder }: Ticket): string {
  return `${upstream}\0${holder}`;
}
