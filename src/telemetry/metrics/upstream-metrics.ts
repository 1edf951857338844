import type { CutCause, CutReason, KeyEvent, TideEvent } from '../../core/events/proxy-events.ts';
import { CUT_CAUSES, CUT_REASONS, KEY_EVENTS } from '../../core/events/proxy-events.ts';
import type { ErrorReason, Millis, RetryEnd, RetryReason } from '../../core/exchange/attempt-outcome.ts';
import { isGatewayError } from '../../core/exchange/attempt-outcome.ts';
import { CODE_CLASSES, classOf, statusOrOther } from './status-labels.ts';
import type { UpstreamCounts } from './request-counts.ts';
import { addTo } from './request-counts.ts';
import { Durations } from './duration-histogram.ts';
import type { Sample } from './exposition/metric-family.ts';
import { CounterSet } from './counter-set.ts';

type Decision = Extract<TideEvent, { type: 'decision' }>['decision'];
type DelaySource = Extract<TideEvent, { type: 'retry' }>['source'];

const ERROR_REASONS: readonly ErrorReason[] = ['connect', 'reset', 'timeout', 'aborted', 'too_many_files'];
const ATTEMPTS = ['1', '2', '3', '4+'] as const;
const DECISIONS: readonly Decision[] = ['passed', 'queued', 'refused'];
const RETRY_REASONS: readonly RetryReason[] = ['status_5xx', 'status_429', 'connect', 'reset', 'timeout', 'lock'];
const RETRY_ENDS: readonly RetryEnd[] = [
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
/** The upstream chooses the words; beyond so many they are told as `other`. */
const MAX_THROTTLE_REASONS = 32;
/** Of attempts without a status, in the place after CODE_CLASSES. */
const ERROR_CLASS = CODE_CLASSES.length;

/** What is counted of one upstream. */
export class UpstreamSeries {
  readonly attempts: CounterSet<number>;
  readonly throttled: CounterSet<string>;
  readonly reports: CounterSet<number>;
  readonly retries: CounterSet<RetryReason>;
  readonly retryEnds: CounterSet<RetryEnd>;
  readonly decisions: CounterSet<Decision>;
  /** By cause, a nested limit's by its name as well. */
  readonly cuts: CounterSet<string>;
  readonly keys: CounterSet<KeyEvent>;
  readonly readerCuts: CounterSet<CutReason>;
  readonly queueWait: Durations;
  readonly #backoffs: ReadonlyMap<DelaySource, Durations>;
  readonly #attemptDurations: (Durations | undefined)[] = [];
  readonly #upstream: string;
  readonly #wallClock: () => Millis;

  /** @param wallClock milliseconds of the epoch */
  constructor(upstream: string, wallClock: () => Millis) {
    this.#upstream = upstream;
    this.#wallClock = wallClock;
    this.attempts = new CounterSet((key) => ({
      upstream,
      attempt: ATTEMPTS[key % ATTEMPTS.length] ?? '4+',
      code: codeLabel(Math.floor(key / ATTEMPTS.length)),
    }));
    this.throttled = new CounterSet((reason) => ({ upstream, reason }));
    this.reports = new CounterSet((status) => ({ upstream, code: statusOrOther(status) }));
    this.retries = new CounterSet((reason) => ({ upstream, reason }), RETRY_REASONS);
    this.retryEnds = new CounterSet((outcome) => ({ upstream, outcome }), RETRY_ENDS);
    this.decisions = new CounterSet((decision) => ({ upstream, decision }), DECISIONS);
    this.cuts = new CounterSet<string>((key) => {
      const [cause = '', limit] = key.split(' ');
      return limit === undefined ? { upstream, cause } : { upstream, limit, cause };
    }, CUT_CAUSES);
    this.keys = new CounterSet((event) => ({ upstream, event }), KEY_EVENTS);
    this.readerCuts = new CounterSet((cause) => ({ upstream, cause }), CUT_REASONS);
    this.queueWait = new Durations({ upstream });
    this.#backoffs = new Map([
      ['backoff', new Durations({ upstream, source: 'backoff' })],
      ['hint', new Durations({ upstream, source: 'hint' })],
    ]);
  }

  attempted({ attempt, code, took, request }: Extract<TideEvent, { type: 'attempt' }>): void {
    this.attempts.count(codeKey(code) * ATTEMPTS.length + Math.min(attempt, ATTEMPTS.length) - 1);
    const codeClass = typeof code === 'number' ? classOf(code) : ERROR_CLASS;
    let durations = this.#attemptDurations[codeClass];
    if (durations === undefined) {
      const labels = { upstream: this.#upstream, code_class: CODE_CLASSES[codeClass] ?? 'error' };
      durations = new Durations(labels, { wallClock: this.#wallClock });
      this.#attemptDurations[codeClass] = durations;
    }
    durations.observe(took, request);
  }

  throttledFor(reason: string): void {
    const known = this.throttled.has(reason) || this.throttled.size < MAX_THROTTLE_REASONS;
    this.throttled.count(known ? reason : 'other');
  }

  note(event: Extract<TideEvent, { type: 'key' | 'reader-cut' }>): void {
    if (event.type === 'key') this.keys.count(event.event);
    else this.readerCuts.count(event.why);
  }

  cut(cause: CutCause, limit: string | undefined): void {
    this.cuts.count(limit === undefined ? cause : `${cause} ${limit}`);
  }

  retried(reason: RetryReason, source: DelaySource, delay: Millis): void {
    this.retries.count(reason);
    this.#backoffs.get(source)?.observe(delay);
  }

  /** What rates are made of. */
  counts(): UpstreamCounts {
    let sent = 0;
    let answered = 0;
    for (const { labels, value } of this.attempts.values()) {
      sent += value;
      const status = Number(labels['code']); // of an error: NaN
      if (status > 0 && !isGatewayError(status)) answered += value;
    }
    const throttled = sumOf(this.throttled);
    const durations: number[] = [];
    for (const each of this.#attemptDurations) if (each !== undefined) addTo(durations, each.counts);
    return { sent, accepted: Math.max(0, answered - throttled), throttled, retries: sumOf(this.retries), durations };
  }

  attemptDurationSamples(name: string): Sample[] {
    return this.#attemptDurations.flatMap((durations) => durations?.samples(name) ?? []);
  }

  backoffSamples(name: string): Sample[] {
    return [...this.#backoffs.values()].flatMap((durations) => durations.samples(name));
  }
}

function sumOf(counters: Pick<CounterSet<string>, 'values'>): number {
  let sum = 0;
  for (const { value } of counters.values()) sum += value;
  return sum;
}

/** A status as itself; the errors below 100, where no status is; 0 for a status out of range. */
function codeKey(code: number | ErrorReason): number {
  if (typeof code !== 'number') return ERROR_REASONS.indexOf(code) + 1;
  return classOf(code) === 0 ? 0 : code;
}

function codeLabel(key: number): string {
  return ERROR_REASONS[key - 1] ?? statusOrOther(key);
}
