import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import { checkBackOff } from './retry-rules.ts';
import type { PartialConfig } from '../load/partial-config.ts';
import { mergeBackOff } from '../schema/retry-overrides.ts';
import { DEFAULT_POLL_BACK_OFF } from '../schema/poll-schema.ts';

/** Polled routes can be polled, and their backoff is valid. */
export function* checkPolls({ routes = [], upstreams }: PartialConfig): Generator<RuleFinding> {
  for (const [i, { match, poll, upstream, retry }] of routes.entries()) {
    if (poll === undefined) continue;
    const path = ['routes', i, 'poll'];
    const retryOn = retry?.retryOn ?? (upstream === undefined ? undefined : upstreams.get(upstream)?.retry.retryOn);
    for (const [j, status] of poll.notReady.entries()) {
      if (retryOn?.includes(status) !== true) continue;
      const message = `a ${status} is also in retry.retryOn: a response that is not ready is not a failure`;
      yield mistakeAt([...path, 'notReady', j], message);
    }
    if (match?.methods?.some((method) => method === 'GET' || method === 'HEAD') === false) {
      yield warningAt(path, 'has no effect: only GET and HEAD are polled, and this route matches neither', 'key');
    }
    const backOff = mergeBackOff(DEFAULT_POLL_BACK_OFF, poll.backOff);
    yield* checkBackOff([...path, 'backOff'], backOff, poll.backOff);
    if ((backOff.baseInterval ?? 0) >= poll.maxWait) {
      yield warningAt([...path, 'maxWait'], 'not longer than the first delay of backOff: no second poll is made');
    }
  }
}
