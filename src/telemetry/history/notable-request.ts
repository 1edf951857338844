import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { TraceStep } from '../../core/exchange/exchange-observer.ts';

const ORDINARY_OUTCOMES: ReadonlySet<RequestOutcome> = new Set(['forwarded', 'checked', 'accepted', 'preflight']);

/**
 * True for a request that is always recorded: any that was not admitted at once, sent once (or polled), and answered in full
 * with a status below 400. All others are sampled, as are requests rejected by overload: there may be very many of those, and
 * their explanations are alike.
 * @param steps its recorded steps: those out of the ordinary
 */
export function isNotable(record: RequestRecord, steps: readonly TraceStep[] | undefined): boolean {
  if (record.reason === 'overloaded' || record.reason === 'too_many_requests') return false;
  return (
    hasUnusualSteps(record, steps) ||
    !ORDINARY_OUTCOMES.has(record.outcome) ||
    !isBelow400(record.status) ||
    record.isTruncated
  );
}

/** Polls of a result that is not ready are ordinary. */
function hasUnusualSteps({ polls = 1 }: RequestRecord, steps: readonly TraceStep[] | undefined): boolean {
  if (steps === undefined) return false;
  return (
    polls === 1 ||
    !steps.every(
      (step) => POLLING_STEPS.has(step.what) && (step.what !== 'answered' || isOrdinaryOutcome(step.outcome)),
    )
  );
}

/** Steps of polling. A retry has a `retry` step in addition. */
const POLLING_STEPS: ReadonlySet<TraceStep['what']> = new Set(['answered', 'poll', 'waited']);

/** A response that needs no step of its own, if nothing else has happened. */
export function isOrdinaryOutcome(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'response' && isBelow400(outcome.status);
}

/** Status 0: the client disconnected before a response head. */
function isBelow400(status: number): boolean {
  return status > 0 && status < 400;
}
