import type { CutCause } from '../../../core/limits/limit-state.ts';
import type { ReaderAbortReason, IdempotencyKeyEvent } from '../../../core/events/event-labels.ts';
import type { ProxyEvent } from '../../../core/events/proxy-events.ts';
import type { RequestRecord } from '../../../core/events/request-record.ts';
import { CUT_CAUSES } from '../../../core/limits/limit-state.ts';
import { READER_ABORT_REASONS, IDEMPOTENCY_KEY_EVENTS } from '../../../core/events/event-labels.ts';
import type { ErrorReason } from '../../../core/exchange/attempt-outcome.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { RetryOutcome, RetryReason } from '../../../core/retry/retry-policy.ts';
import { isGatewayError } from '../../../core/exchange/attempt-outcome.ts';
import type { ConnectFailureCause } from '../../connect-failure-cause.ts';
import { CONNECT_FAILURE_CAUSES, classifyConnectFailure } from '../../connect-failure-cause.ts';
import { CODE_CLASSES, statusClassIndex, statusLabel } from '../status-labels.ts';
import type { UpstreamCounts } from '../request-counts.ts';
import { addBuckets } from '../request-counts.ts';
import { DurationHistogram } from '../duration-histogram.ts';
import type { MetricSample } from '../exposition/metric-family.ts';
import { CounterSet, type TimeSeries } from '../counter-set.ts';

type Decision = Extract<ProxyEvent, { type: 'decision' }>['decision'];
type DelaySource = Extract<ProxyEvent, { type: 'retry' }>['source'];

const ERROR_REASONS: readonly ErrorReason[] = ['connect', 'reset', 'timeout', 'aborted', 'too_many_files'];
/** Reasons for which the upstream may be at fault. */
const FAILURE_LABELS: ReadonlySet<string> = new Set(['connect', 'reset', 'timeout'] satisfies ErrorReason[]);
const ATTEMPT_LABELS = ['1', '2', '3', '4+'] as const;
const DECISIONS: readonly Decision[] = ['passed', 'queued', 'refused'];
const RETRY_REASONS: readonly RetryReason[] = [
  ...(['status_5xx', 'status_429', 'connect', 'reset', 'timeout', 'lock', 'account'] as const),
];
const RETRY_ENDS: readonly RetryOutcome[] = [
  'success',
  'attempts_exhausted',
  'budget_exhausted',
  'deadline',
  'not_idempotent',
  'key_expired',
  'body_too_large',
  'retry_after_too_long',
  'upstream_veto',
  'client_gone',
];
/** The upstream chooses the reasons; those beyond this number are counted as `other`. `unspecified` is not one of them. */
const MAX_THROTTLE_REASONS = 32;
/** The class index of attempts without a status, after those of CODE_CLASSES. */
const ERROR_CLASS = CODE_CLASSES.length;

/** Counters of one upstream. */
export class UpstreamMetrics {
  readonly attempts: CounterSet<number>;
  readonly connectFailures: CounterSet<ConnectFailureCause>;
  readonly throttled: CounterSet<string>;
  readonly reports: CounterSet<number>;
  readonly retries: CounterSet<RetryReason>;
  readonly retryEnds: CounterSet<RetryOutcome>;
  readonly decisions: CounterSet<Decision>;
  readonly clientQuotaRefusals: TimeSeries;
  /** By cause; of a nested limit, by its name too. */
  readonly decreases: CounterSet<string>;
  readonly keys: CounterSet<IdempotencyKeyEvent>;
  readonly readerCuts: CounterSet<ReaderAbortReason>;
  readonly queueWait: DurationHistogram;
  /** Requests that Tidegate refused, or that timed out in the queue. */
  refused = 0;
  /** Throttled responses with a status of 500 or above: they are rejections, not failures. */
  #throttledErrors = 0;
  readonly #backoffs: ReadonlyMap<DelaySource, DurationHistogram>;
  readonly #attemptDurations: (DurationHistogram | undefined)[] = [];
  readonly #upstream: string;
  readonly #wallClock: () => Millis;

  /** @param wallClock milliseconds of the epoch */
  constructor(upstream: string, wallClock: () => Millis) {
    this.#upstream = upstream;
    this.#wallClock = wallClock;
    this.attempts = new CounterSet((key) => ({
      upstream,
      attempt: ATTEMPT_LABELS[key % ATTEMPT_LABELS.length] ?? '4+',
      code: codeLabel(Math.floor(key / ATTEMPT_LABELS.length)),
    }));
    this.connectFailures = new CounterSet((cause) => ({ upstream, cause }), CONNECT_FAILURE_CAUSES);
    this.throttled = new CounterSet((reason) => ({ upstream, reason }), ['unspecified']);
    this.reports = new CounterSet((status) => ({ upstream, code: statusLabel(status) }));
    this.retries = new CounterSet((reason) => ({ upstream, reason }), RETRY_REASONS);
    this.retryEnds = new CounterSet((outcome) => ({ upstream, outcome }), RETRY_ENDS);
    this.decisions = new CounterSet((decision) => ({ upstream, decision }), DECISIONS);
    this.clientQuotaRefusals = { labels: { upstream }, value: 0 };
    this.decreases = new CounterSet<string>((key) => {
      const [cause = '', limit] = key.split(' ');
      return limit === undefined ? { upstream, cause } : { upstream, limit, cause };
    }, CUT_CAUSES);
    this.keys = new CounterSet((event) => ({ upstream, event }), IDEMPOTENCY_KEY_EVENTS);
    this.readerCuts = new CounterSet((cause) => ({ upstream, cause }), READER_ABORT_REASONS);
    this.queueWait = new DurationHistogram({ upstream });
    this.#backoffs = new Map([
      ['backoff', new DurationHistogram({ upstream, source: 'backoff' })],
      ['hint', new DurationHistogram({ upstream, source: 'hint' })],
    ]);
  }

  /** At once, or after a wait in the queue. */
  countRefusal({ reason }: Pick<RequestRecord, 'reason'>): void {
    this.refused += 1;
    if (reason === 'client_quota_exceeded') this.clientQuotaRefusals.value += 1;
  }

  countAttempt({ attempt, code, cause, took, request }: Extract<ProxyEvent, { type: 'attempt' }>): void {
    if (code === 'connect') this.connectFailures.count(classifyConnectFailure(cause));
    this.attempts.count(codeKey(code) * ATTEMPT_LABELS.length + Math.min(attempt, ATTEMPT_LABELS.length) - 1);
    const codeClass = typeof code === 'number' ? statusClassIndex(code) : ERROR_CLASS;
    let durations = this.#attemptDurations[codeClass];
    if (durations === undefined) {
      const labels = { upstream: this.#upstream, code_class: CODE_CLASSES[codeClass] ?? 'error' };
      durations = new DurationHistogram(labels, { wallClock: this.#wallClock });
      this.#attemptDurations[codeClass] = durations;
    }
    durations.observe(took, request);
  }

  countThrottled(reason: string, status: number): void {
    if (status >= 500) this.#throttledErrors += 1;
    const known = this.throttled.has(reason) || this.throttled.size <= MAX_THROTTLE_REASONS;
    this.throttled.count(known ? reason : 'other');
  }

  countKeyOrReader(event: Extract<ProxyEvent, { type: 'key' | 'reader-cut' }>): void {
    if (event.type === 'key') this.keys.count(event.event);
    else this.readerCuts.count(event.why);
  }

  countDecrease(cause: CutCause, limit: string | undefined): void {
    this.decreases.count(limit === undefined ? cause : `${cause} ${limit}`);
  }

  countRetry(reason: RetryReason, source: DelaySource, delay: Millis): void {
    this.retries.count(reason);
    this.#backoffs.get(source)?.observe(delay);
  }

  /** The counters that rates are computed from. */
  counts(): UpstreamCounts {
    let sent = 0;
    let answered = 0;
    let failed = 0;
    for (const { labels, value } of this.attempts.values()) {
      sent += value;
      const status = Number(labels['code']); // NaN for an error
      if (status > 0 && !isGatewayError(status)) answered += value;
      if (status >= 500 || FAILURE_LABELS.has(labels['code'] ?? '')) failed += value;
    }
    const throttled = sumCounters(this.throttled);
    const durations: number[] = [];
    for (const each of this.#attemptDurations) if (each !== undefined) addBuckets(durations, each.counts);
    return {
      sent,
      accepted: Math.max(0, answered - throttled),
      throttled,
      failed: Math.max(0, failed - this.#throttledErrors),
      retries: sumCounters(this.retries),
      refused: this.refused,
      reported: sumCounters(this.reports),
      durations,
    };
  }

  attemptDurationSamples(name: string): MetricSample[] {
    return this.#attemptDurations.flatMap((durations) => durations?.samples(name) ?? []);
  }

  backoffSamples(name: string): MetricSample[] {
    return [...this.#backoffs.values()].flatMap((durations) => durations.samples(name));
  }
}

function sumCounters(counters: Pick<CounterSet<string | number>, 'values'>): number {
  let sum = 0;
  for (const { value } of counters.values()) sum += value;
  return sum;
}

/** The status itself; numbers below 100 for errors; 0 for a status out of range. */
function codeKey(code: number | ErrorReason): number {
  if (typeof code !== 'number') return ERROR_REASONS.indexOf(code) + 1;
  return statusClassIndex(code) === 0 ? 0 : code;
}

function codeLabel(key: number): string {
  return ERROR_REASONS[key - 1] ?? statusLabel(key);
}
