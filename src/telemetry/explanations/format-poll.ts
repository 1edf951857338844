/** Texts about polls: when and why the next one is made, or why none is. */
import type { PlannedPoll } from '../../core/polling/choose-poll.ts';
import type { TraceStep, PollStopReason } from '../../core/exchange/exchange-observer.ts';
import type { FormattedDelay } from './format-attempt.ts';
import { humanizeDuration, toSeconds } from '../format-values.ts';

export function formatPoll({ poll, after }: Extract<TraceStep, { readonly what: 'poll' }>): FormattedDelay {
  const { delay, source, requestedDelay } = poll;
  const why = after === 'not_ready' ? 'not ready' : 'rejected';
  return {
    text: `next poll in ${humanizeDuration(delay)} (${why}): ${POLL_DELAY_TEXTS[source]}`,
    numbers: {
      after,
      source,
      delaySeconds: toSeconds(delay),
      askedSeconds: requestedDelay === 0 ? null : toSeconds(requestedDelay),
    },
  };
}

const POLL_DELAY_TEXTS: Readonly<Record<PlannedPoll['source'], string>> = {
  backoff: 'the backoff of polls',
  hint: 'the upstream asked for this delay',
  end: 'the last one, as the wait of its client ends',
  refusal: 'the Retry-After of the rejection',
};

export const POLL_END_TEXTS: Readonly<Record<PollStopReason, string>> = {
  draining: 'the proxy is shutting down',
  too_many_waiting: 'too many requests are waiting, in all or from this address (poll.maxWaiting)',
  deadline: 'its token would not have come before the deadline',
};
