import type { EndpointFailure, EndpointView } from '../../core/events/gate-views.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import { isThrottled } from '../../core/exchange/attempt-outcome.ts';
import type { Millis } from '../../core/scalars.ts';

/** What the last outcome of each endpoint showed, for operators. A success costs two stores. */
export class LastOutcomes {
  /** By index. Undefined once the endpoint has responded. */
  readonly #failures: (EndpointFailure | undefined)[];
  /** By index; −Infinity before the first time. */
  readonly #workedAt: Millis[];

  constructor(endpoints: number) {
    this.#failures = Array.from({ length: endpoints }, () => undefined);
    this.#workedAt = Array.from({ length: endpoints }, () => Number.NEGATIVE_INFINITY);
  }

  /** @param code of the error, if it has one */
  record(index: number, outcome: AttemptOutcome, code: string | undefined, now: Millis): void {
    const failure = failureIn(outcome, code, now);
    this.#failures[index] = failure;
    if (failure === undefined) this.#workedAt[index] = now;
  }

  /** A health check has made the endpoint unhealthy (`failure`), or healthy. */
  recordCheck(index: number, failure: Omit<EndpointFailure, 'at'> | undefined, at: Millis): void {
    this.#failures[index] = failure && { ...failure, at };
    if (failure === undefined) this.#workedAt[index] = at;
  }

  of(index: number): Pick<EndpointView, 'failure' | 'workedAt'> {
    const workedAt = this.#workedAt[index];
    return {
      failure: this.#failures[index],
      workedAt: workedAt === Number.NEGATIVE_INFINITY ? undefined : workedAt,
    };
  }
}

/** A 500 is a failure to show, although it is none of the endpoint. Undefined for throttling and for a response below 500. */
function failureIn(outcome: AttemptOutcome, code: string | undefined, at: Millis): EndpointFailure | undefined {
  if (outcome.kind === 'error') return { at, reason: outcome.reason, code };
  if (outcome.status < 500 || isThrottled(outcome.status, outcome.hints)) return undefined;
  return { at, reason: 'status', code: String(outcome.status) };
}
