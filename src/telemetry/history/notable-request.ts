import type { RequestOutcome, RequestRecord } from '../../core/events/proxy-events.ts';
import type { Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Step } from '../../core/exchange/exchange-observer.ts';

const USUAL: ReadonlySet<RequestOutcome> = new Set(['forwarded', 'checked', 'preflight']);

/**
 * Whether the story of a request is worth keeping for its own sake: whatever is anything but admitted at once, sent once
 * (or polled), and answered whole with a status below 400. All others are sampled. So are those that were shed because
 * this process is overloaded: there are as many of them as of anything, and one story is like the other.
 * @param steps what happened to it out of the ordinary
 */
export function isTroubled(record: RequestRecord, steps: readonly Step[] | undefined): boolean {
  if (record.reason === 'overloaded' || record.reason === 'too_many_requests') return false;
  return isOutOfOrder(record, steps) || !USUAL.has(record.outcome) || !isBelow400(record.status) || record.cut;
}

/** To be asked for again because it is not ready is in order. */
function isOutOfOrder({ polls = 1 }: RequestRecord, steps: readonly Step[] | undefined): boolean {
  if (steps === undefined) return false;
  return (
    polls === 1 ||
    !steps.every((step) => POLLING.has(step.what) && (step.what !== 'answered' || isOrdinary(step.outcome)))
  );
}

/** Of a retry, `retry` is told as well. */
const POLLING: ReadonlySet<Step['what']> = new Set(['answered', 'poll', 'waited']);

/** An answer that nothing has to be told of, while nothing else has happened. */
export function isOrdinary(outcome: Outcome): boolean {
  return outcome.kind === 'response' && isBelow400(outcome.status);
}

/** 0 is none: its client had gone before a head. */
function isBelow400(status: number): boolean {
  return status > 0 && status < 400;
}
