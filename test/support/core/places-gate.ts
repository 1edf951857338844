/** A gate before an upstream whose limit is a number of places in flight, in virtual time. */
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import type { RateRules } from '../../../src/core/rate/rules.ts';
import type { Millis, PerSecond, Random } from '../../../src/core/scalars.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { LatencyLimiter } from '../../../src/core/rate/latency-limiter.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import { EventQueue } from '../../../src/simulator/engine/event-queue.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from './policy-builders.ts';

/** A limit that latency has shown, and that stays as it is. */
class FixedLatencyLimiter extends LatencyLimiter {
  readonly #places: number;
  readonly #throughput: PerSecond;

  constructor(places: number, throughput: PerSecond) {
    super();
    this.#places = places;
    this.#throughput = throughput;
  }

  override get limit(): number {
    return this.#places;
  }

  override get throughput(): PerSecond {
    return this.#throughput;
  }

  override onAnswer(): boolean {
    return false;
  }

  override advance(): void {}
}

/** The meter of a limit that rejections have shown, and that stays as it is: a response counts until its end. */
class FixedPlacesMeter extends LocalMeter {
  readonly #places: number;
  #reserved = 0;

  constructor(places: number, settings: RateSettings) {
    super(settings, () => 0.5);
    this.#places = places;
  }

  override get concurrencyLimit(): number {
    return this.#places;
  }

  override delay(): Millis {
    return this.awaitsPlace() ? Number.POSITIVE_INFINITY : 0;
  }

  override awaitsPlace(): boolean {
    return this.inFlight + this.#reserved >= this.#places;
  }

  override take(): boolean {
    this.#reserved += 1;
    return false;
  }

  override release(): void {
    this.#reserved -= 1;
  }

  override onEnded(now: Millis): boolean {
    super.onEnded(now);
    return true;
  }
}

/** What became of the requests of one client. */
export class ClientCounts {
  asked = 0;
  served = 0;
  readonly refusals: Extract<AdmissionResult, { readonly kind: 'refused' }>[] = [];
  readonly waits: Millis[] = [];
  held = 0;
  mostHeld = 0;
  get servedShare(): number {
    return this.served / this.asked;
  }

  reset(): void {
    this.asked = 0;
    this.served = 0;
    this.refusals.length = 0;
    this.waits.length = 0;
    this.mostHeld = this.held;
  }
}

export interface SimulatedRequests {
  readonly client: string;
  /** From the send to the response. */
  readonly takes: Millis;
  /** From the response to its end. */
  readonly body?: Millis;
}

export class PlacesGate {
  readonly gate: Gate;
  now: Millis = 0;
  readonly #events = new EventQueue<() => void>();
  readonly #counts = new Map<string, ClientCounts>();
  /** Requests without a response. */
  #held = 0;
  mostHeld = 0;
  /**
   * @param throughput answers a second in full use, as latency has shown; undefined if rejections have shown the number of places
   * @param makeMeter makes the meter of a limit that rejections have shown; one that stays as it is when absent
   */
  constructor(
    places: number,
    throughput: PerSecond | undefined,
    upstream: Partial<UpstreamSettings> = {},
    makeMeter: (rate: RateSettings, random: Random) => LocalMeter = (rate) => new FixedPlacesMeter(places, rate),
  ) {
    const settings = upstreamSettings(upstream);
    const rules: RateRules = {
      ...RATE_RULES,
      makeLatencyLimiter: () => new FixedLatencyLimiter(places, throughput ?? 0),
    };
    const store = new MemoryStore({
      upstreams: [{ ...settings, rate: { ...settings.rate, learnsFromLatency: throughput !== undefined } }],
      maxTracked: 1000,
      random: () => 0.5,
      listen: () => {},
      makeMeter: (_ref, rate, random) =>
        throughput === undefined ? makeMeter(rate, random) : new LocalMeter(rate, random, rules),
    });
    this.gate = new Gate(store, () => {});
  }

  counts(client: string): ClientCounts {
    const known = this.#counts.get(client);
    if (known !== undefined) return known;
    const added = new ClientCounts();
    this.#counts.set(client, added);
    return added;
  }

  at(time: Millis, event: () => void): void {
    this.#events.push(time, event);
  }

  /** One request every `interval`, from `from` on, whatever becomes of the others. */
  openLoop(requests: SimulatedRequests, interval: Millis, from: Millis): void {
    this.at(from, () => {
      this.ask(requests);
      this.openLoop(requests, interval, from + interval);
    });
  }

  /** So many requests at a time, from `from` on. A refused one is repeated after its Retry-After, or after `pause` if that is given. */
  closedLoop(requests: SimulatedRequests, count: number, from: Millis, pause?: Millis): void {
    const again = (result: AdmissionResult | undefined): void => {
      if (result?.kind !== 'refused') return this.ask(requests, again);
      this.at(this.now + (pause ?? result.retryAfterMs), () => this.ask(requests, again));
    };
    for (let i = 0; i < count; i += 1) this.at(from, () => this.ask(requests, again));
  }

  run(until: Millis): void {
    for (;;) {
      const wakeAt = this.gate.nextWake() ?? Number.POSITIVE_INFINITY;
      const next = Math.min(this.#events.nextAt, wakeAt);
      if (next > until) break;
      this.now = Math.max(this.now, next);
      if (wakeAt <= next) this.gate.wake(this.now);
      else this.#events.pop()?.();
    }
    this.now = until;
  }

  /** @param onDone called with the refusal, or without a result when the response has ended */
  ask(requests: SimulatedRequests, onDone: (refusal?: AdmissionResult) => void = () => {}): void {
    const { client } = requests;
    const counts = this.counts(client);
    const askedAt = this.now;
    counts.asked += 1;
    const settle = (result: AdmissionResult): void => {
      if (result.kind === 'admitted') {
        counts.waits.push(this.now - askedAt);
        return this.#send(ticket, requests, onDone);
      }
      counts.refusals.push(result);
      this.gate.onExchangeEnd(ticket);
      onDone(result);
    };
    const ticket = new Ticket('up', client, 1, [SHARED], settle);
    const result = this.gate.requestAdmission(ticket, this.now + 60_000, this.now);
    if (result !== undefined) settle(result);
  }

  #send(ticket: Ticket, { client, takes, body = 0 }: SimulatedRequests, onDone: () => void): void {
    const counts = this.counts(client);
    this.gate.onSent(ticket, this.now);
    counts.held += 1;
    counts.mostHeld = Math.max(counts.mostHeld, counts.held);
    this.#held += 1;
    this.mostHeld = Math.max(this.mostHeld, this.#held);
    this.at(this.now + takes, () => {
      counts.held -= 1;
      counts.served += 1;
      this.#held -= 1;
      this.gate.onOutcome(ticket, response(200), this.now);
      this.at(this.now + body, () => {
        this.gate.onAttemptEnd(ticket, this.now);
        this.gate.onExchangeEnd(ticket);
        onDone();
      });
    });
  }
}
