import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import type { ExplanationRecord } from './explanation-record.ts';
import { clockOriginOf } from './explanation-record.ts';
import { formatCosts } from './format-costs.ts';
import { formatArrival } from './format-arrival.ts';
import { attemptFields, formatAttemptResult, formatRetryDenied, formatRetry } from './format-attempt.ts';
import { decisionFields, secondsOrNull, formatDecision, formatDequeue } from './format-decision.ts';
import { formatPoll, POLL_END_TEXTS } from './format-poll.ts';
import { formatJoin, joinFields } from './format-join.ts';
import { formatKeyClaim, keyClaimFields } from './format-key-claim.ts';
import { formatClientGone, formatVerdict } from './format-verdict.ts';
import { humanizeDuration, toSeconds } from '../format-values.ts';

/** Why a request ended as it did: all decisions on it, in order. */
export interface Explanation {
  readonly id: string;
  /** Its arrival, in ISO 8601. */
  readonly at: string;
  readonly client: {
    /** Hashed identity, and the name in the configuration. */
    readonly key: string;
    readonly name: string | null;
    /** How the client was identified; null if the request was rejected before that. */
    readonly identifiedBy: string | null;
  };
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  readonly path: string;
  readonly outcome: RequestOutcome;
  /** 0: the client disconnected before a response. */
  readonly status: number;
  /** The id of its trace; null if it has none. */
  readonly traceId: string | null;
  readonly verdict: string;
  readonly steps: readonly ExplanationStep[];
}

export interface ExplanationStep {
  /** Seconds since the arrival. */
  readonly at: number;
  readonly what:
    | 'arrived'
    | 'claimed'
    | 'joined'
    | 'decided'
    | 'queued'
    | 'sent'
    | 'answered'
    | 'retry'
    | 'poll'
    | 'waited'
    | 'gone'
    | 'draining'
    | 'fallback'
    | 'cost'
    | 'verdict';
  /** For people. */
  readonly text: string;
  /** The numbers of the text, for programs. */
  readonly [number: string]: unknown;
}

/**
 * Builds the explanation of a request. The record has only the steps out of the ordinary; the others are derived from them
 * here.
 */
export function buildExplanation(recorded: ExplanationRecord): Explanation {
  const { record, arrivedAt, identifiedBy } = recorded;
  const verdict = formatVerdict(recorded);
  return {
    id: record.id,
    at: new Date(arrivedAt).toISOString(),
    client: { key: record.client, name: record.clientName ?? null, identifiedBy: identifiedBy ?? null },
    route: record.route,
    upstream: record.upstream,
    method: record.method,
    path: record.path,
    outcome: record.outcome,
    status: record.status,
    traceId: record.traceId ?? null,
    verdict,
    steps: [
      formatArrival(recorded),
      ...new ExplanationBuilder(recorded).build(),
      ...formatCosts(recorded),
      {
        at: toSeconds(record.took),
        what: 'verdict',
        text: verdict,
        status: record.status,
        headSeconds: toSeconds(record.timeToHead),
        queuedSeconds: toSeconds(record.queueTime),
        waitedSeconds: toSeconds(record.sleepTime),
        retryAfterSeconds: record.retryAfterSeconds ?? null,
        retryAfterFrom: record.retryAfterFrom ?? null,
      },
    ],
  };
}

type ClientGoneStep = Extract<TraceStep, { readonly what: 'gone' }>;

/** Goes through the recorded steps, with the state that derived steps depend on. */
class ExplanationBuilder {
  readonly #record: ExplanationRecord;
  readonly #steps: ExplanationStep[] = [];
  /** A step says that the next attempt was admitted. */
  #isAdmitted = false;
  #lastOutcome: AttemptOutcome | undefined;
  #attempts = 0;
  /** The memory of the backoff. */
  #backOffMemory = 0;
  /** Pending: its attempt is added first, when its outcome is known. */
  #clientGone: ClientGoneStep | undefined;

  constructor(record: ExplanationRecord) {
    this.#record = record;
  }

  build(): ExplanationStep[] {
    const { record, last, steps = [] } = this.#record;
    for (const step of steps) this.#addStep(step);
    // An ordinary last outcome is not recorded as a step; nor is one beyond MAX_RECORD_STEPS.
    if (last?.outcome !== undefined && this.#attempts < record.attempts) {
      const { outcome, endpoint, cause, account, limit } = last;
      const at = record.at + record.timeToHead;
      if (steps.length > 0) this.#addOmitted(at - outcome.took);
      this.#addStep({ what: 'answered', at, attempt: record.attempts, outcome, endpoint, cause, account, limit });
    }
    this.#addClientGone();
    return this.#steps;
  }

  #addStep(step: TraceStep): void {
    switch (step.what) {
      case 'claimed':
        return this.#push(step.at, 'claimed', formatKeyClaim(step), keyClaimFields(step));
      case 'joined':
        return this.#push(step.at, 'joined', formatJoin(step), joinFields(step));
      case 'decided': {
        this.#isAdmitted = step.isObserved;
        const numbers = { decision: step.decision, reason: step.why ?? null, observed: step.isObserved };
        const back = { retryAfterSeconds: secondsOrNull(step.retryAfterMs) };
        return this.#push(step.at, 'decided', formatDecision(step, clockOriginOf(this.#record)), {
          ...numbers,
          ...back,
          ...decisionFields(step.details),
        });
      }
      case 'dequeued': {
        this.#isAdmitted = step.why === undefined;
        const numbers = step.details === undefined ? {} : decisionFields(step.details);
        const waitedSeconds = toSeconds(step.waited);
        const back = { retryAfterSeconds: secondsOrNull(step.retryAfterMs) };
        return this.#push(step.at, 'queued', formatDequeue(step, clockOriginOf(this.#record)), {
          waitedSeconds,
          reason: step.why ?? null,
          ...back,
          ...numbers,
        });
      }
      case 'answered':
        return this.#addAttempt(step);
      case 'retry': {
        const { retryPolicy } = this.#record;
        const { reason } = step.retry;
        const { text, numbers } =
          retryPolicy === undefined
            ? { text: reason, numbers: {} }
            : formatRetry(step, retryPolicy, this.#lastOutcome, this.#backOffMemory);
        this.#backOffMemory = step.retry.memory;
        return this.#push(step.at, 'retry', text, numbers);
      }
      case 'poll': {
        const { text, numbers } = formatPoll(step);
        this.#backOffMemory = 0; // each poll has its own retries
        return this.#push(step.at, 'poll', text, numbers);
      }
      case 'unpolled':
        return this.#push(step.at, 'poll', `no further poll: ${POLL_END_TEXTS[step.why]}`, {
          denied: step.why,
        });
      case 'denied':
        if (step.why === 'success') return undefined;
        return this.#push(step.at, 'retry', `not retried: ${formatRetryDenied(step)}`, { denied: step.why });
      case 'waited':
        this.#isAdmitted = false; // the next attempt needs admission again
        return this.#push(step.at, 'waited', `waited ${humanizeDuration(step.slept)}`, {
          waitedSeconds: toSeconds(step.slept),
        });
      case 'gone':
        this.#clientGone = step;
        return step.during === 'attempt' ? undefined : this.#addClientGone();
      case 'fallback':
        return this.#addFallback(step);
      case 'draining':
        return this.#push(step.at, 'draining', 'the proxy shuts down before the wait would end', {});
    }
  }

  /** The attempts that follow are counted anew, and need admission by the other upstream. */
  #addFallback({ at, from, to, why }: Extract<TraceStep, { readonly what: 'fallback' }>): void {
    const text = `${from} did not process the request (${why}): sent to its fallback ${to}`;
    this.#push(at, 'fallback', text, { from, to, reason: why });
    this.#isAdmitted = false;
    this.#lastOutcome = undefined;
    this.#attempts = this.#backOffMemory = 0;
  }

  #addAttempt(step: Extract<TraceStep, { readonly what: 'answered' }>): void {
    const { at, attempt, outcome, endpoint, cause, account, limit } = step;
    const sentAt = Math.max(this.#record.record.at, Math.min(at - outcome.took, this.#clientGone?.at ?? at));
    if (!this.#isAdmitted) this.#push(sentAt, 'decided', 'passed: admitted at once', { decision: 'passed' });
    const where = endpoint === undefined ? '' : ` to ${endpoint}`;
    const as = account === undefined ? '' : ` with account ${account}`;
    const sent = { attempt, endpoint: endpoint ?? null, ...(account === undefined ? {} : { account }) };
    this.#push(sentAt, 'sent', `attempt ${attempt} sent${where}${as}`, sent);
    this.#addClientGone();
    this.#push(
      at,
      'answered',
      formatAttemptResult({ attempt, outcome, cause, limit }),
      attemptFields({ attempt, outcome, endpoint, cause, limit }),
    );
    this.#lastOutcome = outcome;
    this.#attempts = attempt;
    this.#isAdmitted = false;
  }

  #addClientGone(): void {
    if (this.#clientGone === undefined) return;
    const { at, during } = this.#clientGone;
    this.#clientGone = undefined;
    this.#push(at, 'gone', formatClientGone(this.#record), { during });
  }

  #addOmitted(at: Millis): void {
    if (this.#attempts + 1 >= this.#record.record.attempts) return;
    this.#push(at, 'waited', 'more steps than are kept of one request', {});
    this.#isAdmitted = true;
  }

  #push(at: Millis, what: ExplanationStep['what'], text: string, numbers: Readonly<Record<string, unknown>>): void {
    this.#steps.push({ at: toSeconds(at - this.#record.record.at), what, text, ...numbers });
  }
}
