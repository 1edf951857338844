import type { AdmissionResult } from '../admission/gate-decision.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { EventSink } from '../events/proxy-events.ts';
import type { KeyRefusalReason } from '../idempotency/key-record.ts';
import type { RetryOutcome } from '../retry/retry-policy.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import { buildDecisionStep, buildDequeuedStep, type DecisionExplainer } from './decision-steps.ts';
import type { ExchangeEffects } from './effects.ts';
import type { ExchangeDriverOptions } from './exchange-driver-options.ts';
import type { ExchangeObserver, PollStopReason, TraceStep } from './exchange-observer.ts';
import { PHASE_LABELS, type ExchangePhase } from './exchange-phase.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type { KeyClaimRefused, PollStep, ReserveStep } from './steps.ts';

/** Reports one exchange while it runs: events to metrics and logs, steps to the observer of explanations and traces. */
export class ExchangeReporter<E extends ExchangeEffects> {
  readonly #observed: E;
  readonly #observer: ExchangeObserver<E> | undefined;
  readonly #emit: EventSink;
  readonly #ticket: Ticket;
  readonly #requestId: string | undefined;
  /** Of all sends, and of those of the present poll. */
  #attempt = 0;
  #attemptInPoll = 0;
  #isClaimRefused = false;

  constructor({ effects, observer, listen, ticket, requestId }: ExchangeDriverOptions<E>) {
    this.#observed = effects;
    this.#observer = observer;
    this.#emit = listen;
    this.#ticket = ticket;
    this.#requestId = requestId;
  }

  get #upstream(): string {
    return this.#ticket.upstream;
  }

  onStart(): void {
    this.#observer?.onStart(this.#observed);
  }

  recordStep(step: TraceStep | undefined): void {
    if (step !== undefined) this.#observer?.onStep(this.#observed, step);
  }

  /**
   * The key was not free at once.
   * @param why the claim was refused; undefined if the key became free
   * @returns the time waited for it
   */
  onClaim(since: Millis, why: KeyClaimRefused['why'] | undefined, at: Millis): Millis {
    const waited = at - since;
    this.#isClaimRefused = why !== undefined;
    if (why !== 'draining') this.#emit({ type: 'key', upstream: this.#upstream, event: why ?? 'awaited' });
    this.recordStep({ what: 'claimed', at, waited, why });
    return waited;
  }

  /** The request has waited for an equal read. @param equalId see `TraceStep`. @returns for how long */
  onJoined(since: Millis, equalId: string | undefined, at: Millis): Millis {
    const waited = at - since;
    this.recordStep({ what: 'joined', at, waited, equalId });
    return waited;
  }

  /** The gate's decision on an arrival or a retry; undefined: queued. */
  onGateDecision(gate: DecisionExplainer, admission: AdmissionResult | undefined, at: Millis): void {
    if (this.#observer !== undefined) this.recordStep(buildDecisionStep(gate, this.#ticket, admission, at));
  }

  /** @returns the time in the queue */
  onDequeued(gate: DecisionExplainer, admission: AdmissionResult, since: Millis, at: Millis): Millis {
    const waited = at - since;
    if (this.#observer !== undefined) this.recordStep(buildDequeuedStep(gate, this.#ticket, admission, waited, at));
    return waited;
  }

  /** The wait before a retry or a poll is over. @returns its length */
  onWaited(since: Millis, at: Millis): Millis {
    const slept = at - since;
    this.recordStep({ what: 'waited', at, slept });
    return slept;
  }

  onSend(attemptInPoll: number): void {
    this.#attempt += 1;
    this.#attemptInPoll = attemptInPoll;
    this.#observer?.onSend(this.#observed, this.#attempt);
  }

  emitAttempt(outcome: AttemptOutcome): void {
    const code = outcome.kind === 'response' ? outcome.status : outcome.reason;
    const cause = outcome.kind === 'response' ? undefined : outcome.cause;
    const { took } = outcome;
    const request = this.#requestId;
    this.#emit({ type: 'attempt', upstream: this.#upstream, attempt: this.#attemptInPoll, code, cause, took, request });
  }

  /** To be called once the gate has learned from the outcome: an observer may read the result. */
  onOutcome(outcome: AttemptOutcome, at: Millis): void {
    this.#observer?.onOutcome(this.#observed, this.#attempt, outcome, at);
  }

  /** @param why the retry may not begin; undefined if it may */
  onRetryDecision({ retry, attemptTime, clientTimeout }: ReserveStep, why: RetryOutcome | undefined, at: Millis): void {
    if (why !== undefined) return this.recordStep({ what: 'denied', at, why, attemptTime, clientTimeout });
    const { reason, delay, source } = retry;
    this.#emit({ type: 'retry', upstream: this.#upstream, reason, delay, source });
    this.recordStep({ what: 'retry', at, retry, attempt: this.#attempt, ordinal: this.#attemptInPoll });
  }

  /** @param why the poll may not begin; undefined if it may */
  onPollDecision({ poll, after }: PollStep, why: PollStopReason | undefined, at: Millis): void {
    this.recordStep(why === undefined ? { what: 'poll', at, poll, after } : { what: 'unpolled', at, why });
  }

  onClientGone(phase: ExchangePhase['name'], at: Millis): void {
    const during = PHASE_LABELS[phase];
    if (during !== undefined) this.recordStep({ what: 'gone', at, during });
  }

  onEnd(verdict: ExchangeVerdict, at: Millis): void {
    const { retryOutcome } = verdict;
    const event = this.#isClaimRefused ? undefined : keyEventOf(verdict);
    if (event !== undefined) {
      this.#emit({ type: 'key', upstream: this.#upstream, event });
      if (event !== 'replayed') this.recordStep({ what: 'claimed', at, waited: 0, why: event });
    }
    if (retryOutcome !== undefined) {
      this.#emit({ type: 'retry-end', upstream: this.#upstream, outcome: retryOutcome });
    }
  }
}

/** What the exchange learned of its key once it had it. */
function keyEventOf(verdict: ExchangeVerdict): KeyRefusalReason | 'replayed' | undefined {
  if (verdict.kind === 'replay') return 'replayed';
  const why = verdict.kind === 'refuse' ? verdict.why : verdict.kind === 'unknown' ? verdict.reason : undefined;
  switch (why) {
    case 'key_expired':
    case 'key_reused':
    case 'key_in_use':
    case 'key_store_lost':
    case 'key_ambiguous':
    case 'key_overused':
      return why;
    default:
      return undefined;
  }
}
