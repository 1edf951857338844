import type { RequestRecord } from '../../core/events/request-record.ts';
import type { RetryAfterSource, SignatureLabel } from '../../core/events/event-labels.ts';
import { RETRY_AFTER_SOURCES, SIGNATURE_LABELS } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import { CODE_CLASSES, statusClassIndex, statusLabel } from './status-labels.ts';
import type { RequestCounts } from './request-counts.ts';
import { addBuckets, ZERO_REQUEST_COUNTS, REQUEST_OUTCOMES } from './request-counts.ts';
import { DurationHistogram } from './duration-histogram.ts';
import type { MetricSample } from './exposition/metric-family.ts';
import { CounterSet, type TimeSeries } from './counter-set.ts';

/** Methods with a label value of their own. The rest is `other`, so that clients cannot create series by inventing methods. */
const METHODS = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const METHOD_INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((method, index) => [method, index]));

/** Counters of one route. */
export class RouteMetrics {
  readonly inFlight: TimeSeries;
  /** Open connections that were upgraded to another protocol, and the bytes of those that ended. */
  readonly upgraded: TimeSeries;
  readonly toUpstream: TimeSeries;
  readonly toClient: TimeSeries;
  readonly interruptedWrites: TimeSeries;
  readonly #route: string;
  readonly #wallClock: () => Millis;
  readonly #requests: CounterSet<number>;
  readonly #retryAfter: CounterSet<number>;
  /** Undefined before the first: most routes verify nothing. */
  #signatures: CounterSet<SignatureLabel> | undefined;
  readonly #durations: (DurationHistogram | undefined)[] = [];

  /** @param wallClock milliseconds of the epoch */
  constructor(route: string, wallClock: () => Millis) {
    this.#route = route;
    this.#wallClock = wallClock;
    this.inFlight = { labels: { route }, value: 0 };
    this.upgraded = { labels: { route }, value: 0 };
    this.toUpstream = { labels: { route, direction: 'to_upstream' }, value: 0 };
    this.toClient = { labels: { route, direction: 'to_client' }, value: 0 };
    this.interruptedWrites = { labels: { route }, value: 0 };
    this.#requests = new CounterSet((key) => {
      const { method, status, outcome } = unpackRequestKey(key);
      return { route, method, code: statusLabel(status), outcome };
    });
    this.#retryAfter = new CounterSet((key) => {
      const from = RETRY_AFTER_SOURCES[key % RETRY_AFTER_SOURCES.length] ?? 'other';
      return { route, code: statusLabel(Math.floor(key / RETRY_AFTER_SOURCES.length)), from };
    });
  }

  countArrival(): void {
    this.inFlight.value += 1;
  }

  countUpgrade(): void {
    this.upgraded.value += 1;
  }

  countSignature(result: SignatureLabel): void {
    const route = this.#route;
    this.#signatures ??= new CounterSet((label) => ({ route, result: label }), SIGNATURE_LABELS);
    this.#signatures.count(result);
  }

  /** An attempt of a delivery is no request of a client: `DeliveryMetrics` counts it. */
  countRequest(record: RequestRecord): void {
    this.inFlight.value -= 1;
    if (record.delivery !== undefined) return;
    if (record.upgradeBytes !== undefined) this.#countUpgradeEnd(record.upgradeBytes);
    this.#requests.count(packRequestKey(record));
    if (record.retryAfterFrom !== undefined) {
      this.#retryAfter.count(packRetryAfterKey(record.status, record.retryAfterFrom));
    }
    const codeClass = statusClassIndex(record.status);
    let durations = this.#durations[codeClass];
    if (durations === undefined) {
      const labels = { route: this.#route, code_class: CODE_CLASSES[codeClass] ?? 'other' };
      durations = new DurationHistogram(labels, { wallClock: this.#wallClock });
      this.#durations[codeClass] = durations;
    }
    durations.observe(record.took, record.id, record.traceId);
  }

  #countUpgradeEnd({ toUpstream, toClient }: NonNullable<RequestRecord['upgradeBytes']>): void {
    this.upgraded.value -= 1;
    this.toUpstream.value += toUpstream;
    this.toClient.value += toClient;
  }

  requests(): Iterable<TimeSeries> {
    return this.#requests.values();
  }

  signatures(): Iterable<TimeSeries> {
    return this.#signatures?.values() ?? [];
  }

  /** Requests by outcome alone. All series exist from the start, so an alert does not miss the first event. */
  outcomeSamples(): MetricSample[] {
    const route = this.#route;
    return Object.entries(this.counts().outcomes).map(([outcome, value]) => ({ labels: { route, outcome }, value }));
  }

  /** Requests by the class of their status alone. All series exist from the start. */
  codeClassSamples(): MetricSample[] {
    const sums = CODE_CLASSES.map(() => 0);
    for (const { labels, value } of this.#requests.values()) {
      const codeClass = statusClassIndex(Number(labels['code']));
      sums[codeClass] = (sums[codeClass] ?? 0) + value;
    }
    const route = this.#route;
    return CODE_CLASSES.map((name, i) => ({ labels: { route, code_class: name }, value: sums[i] ?? 0 }));
  }

  /** Responses with a Retry-After. */
  retryAfter(): Iterable<TimeSeries> {
    return this.#retryAfter.values();
  }

  /** The counters that rates are computed from; those of attempts are in UpstreamMetrics. */
  counts(): RequestCounts {
    const outcomes = { ...ZERO_REQUEST_COUNTS.outcomes };
    let serverErrors = 0;
    for (const { labels, value } of this.#requests.values()) {
      if (Number(labels['code']) >= 500) serverErrors += value;
      const outcome = REQUEST_OUTCOMES.find((each) => each === labels['outcome']);
      if (outcome !== undefined) outcomes[outcome] += value;
    }
    const durations: number[] = [];
    for (const each of this.#durations) if (each !== undefined) addBuckets(durations, each.counts);
    return {
      outcomes,
      serverErrors,
      durations,
      inFlight: this.inFlight.value,
      upstreams: ZERO_REQUEST_COUNTS.upstreams,
    };
  }

  durationSamples(name: string): MetricSample[] {
    return this.#durations.flatMap((durations) => durations?.samples(name) ?? []);
  }
}

/** Method, status and outcome as one small integer: a key without building a string. */
function packRequestKey({ method, status, outcome }: RequestRecord): number {
  const statusOrZero = statusClassIndex(status) === 0 ? 0 : status;
  return (
    (statusOrZero * METHODS.length + (METHOD_INDEX.get(method) ?? 0)) * REQUEST_OUTCOMES.length +
    REQUEST_OUTCOMES.indexOf(outcome)
  );
}

function packRetryAfterKey(status: number, from: RetryAfterSource): number {
  return status * RETRY_AFTER_SOURCES.length + RETRY_AFTER_SOURCES.indexOf(from);
}

function unpackRequestKey(key: number): { method: string; status: number; outcome: string } {
  const rest = Math.floor(key / REQUEST_OUTCOMES.length);
  return {
    outcome: REQUEST_OUTCOMES[key % REQUEST_OUTCOMES.length] ?? 'other',
    method: METHODS[rest % METHODS.length] ?? 'other',
    status: Math.floor(rest / METHODS.length),
  };
}
