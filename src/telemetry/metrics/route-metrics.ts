import type { RequestRecord, RetryAfterSource } from '../../core/events/proxy-events.ts';
import { RETRY_AFTER_SOURCES } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { CODE_CLASSES, classOf, statusOrOther } from './status-labels.ts';
import type { Counts } from './request-counts.ts';
import { addTo, NO_COUNTS, REQUEST_OUTCOMES } from './request-counts.ts';
import { Durations } from './duration-histogram.ts';
import type { Sample } from './exposition/metric-family.ts';
import { CounterSet, type Series } from './counter-set.ts';

/** Methods with a label value of their own; the rest is `other`, so that a client cannot make series by inventing methods. */
const METHODS = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const METHOD_INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((method, index) => [method, index]));

/** What is counted of one route. */
export class RouteSeries {
  readonly inFlight: Series;
  /** Connections that have changed to another protocol, open now, and their bytes so far. */
  readonly upgraded: Series;
  readonly toUpstream: Series;
  readonly toClient: Series;
  readonly #route: string;
  readonly #wallClock: () => Millis;
  readonly #requests: CounterSet<number>;
  readonly #retryAfter: CounterSet<number>;
  readonly #durations: (Durations | undefined)[] = [];

  /** @param wallClock milliseconds of the epoch */
  constructor(route: string, wallClock: () => Millis) {
    this.#route = route;
    this.#wallClock = wallClock;
    this.inFlight = { labels: { route }, value: 0 };
    this.upgraded = { labels: { route }, value: 0 };
    this.toUpstream = { labels: { route, direction: 'to_upstream' }, value: 0 };
    this.toClient = { labels: { route, direction: 'to_client' }, value: 0 };
    this.#requests = new CounterSet((key) => {
      const { method, status, outcome } = unpack(key);
      return { route, method, code: statusOrOther(status), outcome };
    });
    this.#retryAfter = new CounterSet((key) => {
      const from = RETRY_AFTER_SOURCES[key % RETRY_AFTER_SOURCES.length] ?? 'other';
      return { route, code: statusOrOther(Math.floor(key / RETRY_AFTER_SOURCES.length)), from };
    });
  }

  arrived(): void {
    this.inFlight.value += 1;
  }

  changedProtocol(): void {
    this.upgraded.value += 1;
  }

  done(record: RequestRecord): void {
    this.inFlight.value -= 1;
    if (record.carried !== undefined) this.#ended(record.carried);
    this.#requests.count(pack(record));
    if (record.retryAfterFrom !== undefined) this.#retryAfter.count(packSource(record.status, record.retryAfterFrom));
    const codeClass = classOf(record.status);
    let durations = this.#durations[codeClass];
    if (durations === undefined) {
      const labels = { route: this.#route, code_class: CODE_CLASSES[codeClass] ?? 'other' };
      durations = new Durations(labels, { wallClock: this.#wallClock });
      this.#durations[codeClass] = durations;
    }
    durations.observe(record.took, record.id, record.traceId);
  }

  #ended({ toUpstream, toClient }: NonNullable<RequestRecord['carried']>): void {
    this.upgraded.value -= 1;
    this.toUpstream.value += toUpstream;
    this.toClient.value += toClient;
  }

  requests(): Iterable<Series> {
    return this.#requests.values();
  }

  /** Answers that say when to come back. */
  retryAfter(): Iterable<Series> {
    return this.#retryAfter.values();
  }

  /** What rates are made of: of attempts, the upstreams know. */
  counts(): Counts {
    const outcomes = { ...NO_COUNTS.outcomes };
    for (const { labels, value } of this.#requests.values()) {
      const outcome = REQUEST_OUTCOMES.find((each) => each === labels['outcome']);
      if (outcome !== undefined) outcomes[outcome] += value;
    }
    const durations: number[] = [];
    for (const each of this.#durations) if (each !== undefined) addTo(durations, each.counts);
    return { outcomes, durations, inFlight: this.inFlight.value, upstreams: NO_COUNTS.upstreams };
  }

  durationSamples(name: string): Sample[] {
    return this.#durations.flatMap((durations) => durations?.samples(name) ?? []);
  }
}

/** Method, status and outcome as one small integer: a key that needs no string to be built. */
function pack({ method, status, outcome }: RequestRecord): number {
  const told = classOf(status) === 0 ? 0 : status;
  return (
    (told * METHODS.length + (METHOD_INDEX.get(method) ?? 0)) * REQUEST_OUTCOMES.length +
    REQUEST_OUTCOMES.indexOf(outcome)
  );
}

function packSource(status: number, from: RetryAfterSource): number {
  return status * RETRY_AFTER_SOURCES.length + RETRY_AFTER_SOURCES.indexOf(from);
}

function unpack(key: number): { method: string; status: number; outcome: string } {
  const rest = Math.floor(key / REQUEST_OUTCOMES.length);
  return {
    outcome: REQUEST_OUTCOMES[key % REQUEST_OUTCOMES.length] ?? 'other',
    method: METHODS[rest % METHODS.length] ?? 'other',
    status: Math.floor(rest / METHODS.length),
  };
}
