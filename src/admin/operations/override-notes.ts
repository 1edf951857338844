/** What an operator should know of what was just done, in sentences. */
import type { SteeredUpstream } from '../api/action-schemas.ts';
import type { UpstreamStatus } from '../api/response-schemas.ts';
import type { Command } from '../api/admin-operations.ts';
import type { PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Facts } from './process-group-operations.ts';

export function noteSteering(
  row: UpstreamStatus,
  command: Command,
  { store, workers, maxRate }: Pick<Facts, 'store' | 'workers'> & { readonly maxRate: PerSecond | undefined },
): SteeredUpstream['notes'] {
  const notes = notesOf(row, command);
  if (command.do === 'pin' && maxRate !== undefined && command.rate > maxRate) {
    notes.push(`That is more than maxRate (${write(maxRate)}): it is held at this all the same.`);
  }
  if (store === 'redis') {
    const whose =
      workers > 1 ? `The ${workers} processes of this machine only, each with its part` : 'This process only';
    notes.push(`${whose}: replicas that share the limit through Redis are not told, and go on as before.`);
    if (command.do === 'unblock') notes.push(PROBED_BY_REDIS);
  }
  if (command.do === 'pin' || command.do === 'block') notes.push('A restart forgets it.');
  return notes;
}

function notesOf({ scope, learnedRate, nestedLimits }: UpstreamStatus, command: Command): string[] {
  switch (command.do) {
    case 'pin':
      return [
        `The rate is held at ${write(command.rate)}, and answers of 429 do not lower it: if that is more than the upstream allows, it rejects the rest, and may shut us out.`,
        learnedRate === null
          ? 'No limit has been felt so far.'
          : `What has been learned is ${write(learnedRate)}; it is learned on, and holds again after unpin.`,
        ...(nestedLimits.length === 0 ? [] : [NESTED_GO_ON]),
        ...(scope === 'upstream' ? [] : [`Each limit of a single ${scope} is held at this.`]),
      ];
    case 'unpin':
      return [
        learnedRate === null ? 'Nothing limits now.' : `The rate is what has been learned: ${write(learnedRate)}.`,
      ];
    case 'block': {
      const end = command.time === undefined ? 'until it is unblocked' : `for ${Math.round(command.time / 1000)} s`;
      return [`Nothing passes ${end}: requests are answered 503 with Retry-After. Those on their way are answered.`];
    }
    case 'unblock':
      return ['Requests pass. Where the upstream itself lets nothing through, the next request is a probe.'];
  }
}

function write(rate: PerSecond): string {
  return `${Number(rate.toPrecision(3))}/s`;
}

const NESTED_GO_ON = 'Limits nested in it go on as they are: a request has to pass those too.';
const PROBED_BY_REDIS = 'Where the upstream itself blocks, that is kept in Redis, and ends by its probes.';
