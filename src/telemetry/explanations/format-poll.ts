/** Why it was asked for again on behalf of a client that waits, and when; or why not. */
import type { Poll } from '../../core/polling/choose-poll.ts';
import type { Step, Unpolled } from '../../core/exchange/exchange-observer.ts';
import type { Delay } from './format-attempt.ts';
import { tellDuration, toSeconds } from './format-values.ts';

export function tellPoll({ poll, after }: Extract<Step, { readonly what: 'poll' }>): Delay {
  const { delay, source, asked } = poll;
  const why = after === 'not_ready' ? 'not ready' : 'turned away';
  return {
    text: `to be asked for again in ${tellDuration(delay)} (${why}): ${SOURCES[source]}`,
    numbers: { after, source, delaySeconds: toSeconds(delay), askedSeconds: asked === 0 ? null : toSeconds(asked) },
  };
}

const SOURCES: Readonly<Record<Poll['source'], string>> = {
  backoff: 'the back-off of polls',
  hint: 'the upstream asked for so much',
  end: 'for the last time, as its client waits no longer',
  refusal: 'when it was told to come back',
};

export const UNPOLLED: Readonly<Record<Unpolled, string>> = {
  draining: 'this proxy goes away',
  too_many_waiting: 'as many clients are waited for as may be (poll.maxWaiting)',
  deadline: 'its turn would not have come in time',
};
