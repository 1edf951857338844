import type { Checked } from './checked.ts';
import { mistake, warning } from './checked.ts';
import { checkBackOff } from './check-retries.ts';
import type { Draft } from './draft.ts';
import { overrideBackOff } from './override.ts';
import { POLL_BACK_OFF } from './poll-schema.ts';

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
