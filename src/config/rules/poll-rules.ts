import type { Checked } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import { checkBackOff } from './retry-rules.ts';
import type { Draft } from '../load/partial-config.ts';
import { overrideBackOff } from '../schema/retry-overrides.ts';
import { POLL_BACK_OFF } from '../schema/poll-schema.ts';

/** What is polled can be polled, and its back-off can be made. */
export function* checkPolls({ routes = [], upstreams }: Draft): Generator<Checked> {
  for (const [i, { takes, poll, upstream, retry }] of routes.entries()) {
    if (poll === undefined) continue;
    const path = ['routes', i, 'poll'];
    const retryOn = retry?.retryOn ?? (upstream === undefined ? undefined : upstreams.get(upstream)?.retry.retryOn);
    for (const [j, status] of poll.notReady.entries()) {
      if (retryOn?.includes(status) !== true) continue;
      const message = `a ${status} is among those of retry.retryOn: what is not ready is no failure`;
      yield mistake([...path, 'notReady', j], message);
    }
    if (takes?.methods?.some((method) => method === 'GET' || method === 'HEAD') === false) {
      yield warning(path, 'has no effect: only GET and HEAD are polled, and this route takes neither', 'key');
    }
    const backOff = overrideBackOff(POLL_BACK_OFF, poll.backOff);
    yield* checkBackOff([...path, 'backOff'], backOff, poll.backOff);
    if ((backOff.baseInterval ?? 0) >= poll.maxWait) {
      yield warning([...path, 'maxWait'], 'not longer than the first delay of backOff: nothing is asked for twice');
    }
  }
}
