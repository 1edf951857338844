/** Notes on the effects of an operator command, in sentences. */
import type { UpstreamActionResponse } from '../api/action-schemas.ts';
import type { UpstreamStatus } from '../api/upstream-schemas.ts';
import type { OverrideCommand } from '../api/admin-operations.ts';
import type { PerSecond } from '../../core/scalars.ts';
import type { ProcessFacts } from './process-facts.ts';

export function overrideNotes(
  row: UpstreamStatus,
  command: OverrideCommand,
  { store, workers, maxRate }: Pick<ProcessFacts, 'store' | 'workers'> & { readonly maxRate: PerSecond | undefined },
): UpstreamActionResponse['notes'] {
  const notes = commandNotes(row, command);
  if (command.do === 'pin' && maxRate !== undefined && command.rate > maxRate) {
    notes.push(`That is more than maxRate (${formatRate(maxRate)}); the pin overrides it.`);
  }
  if (store === 'redis') {
    const scopeText =
      workers > 1 ? `Only the ${workers} workers of this machine, each with its part` : 'This process only';
    notes.push(`${scopeText}: replicas that share the limit through Redis are not affected.`);
    if (command.do === 'unblock') notes.push(NOTE_REDIS_BLOCK);
  }
  if (command.do === 'pin' || command.do === 'block') notes.push('A restart removes it.');
  return notes;
}

function commandNotes({ scope, learnedRate, nestedLimits }: UpstreamStatus, command: OverrideCommand): string[] {
  switch (command.do) {
    case 'pin':
      return [
        `The rate is pinned at ${formatRate(command.rate)}, and 429s do not lower it. If the upstream allows less, it rejects the rest, and may block all requests.`,
        learnedRate === null
          ? 'No limit has been detected so far.'
          : `The learned rate is ${formatRate(learnedRate)}; learning continues, and the learned rate applies again after unpin.`,
        ...(nestedLimits.length === 0 ? [] : [NOTE_NESTED_LIMITS]),
        ...(scope === 'upstream' ? [] : [`The limit of each ${scope} is pinned at this rate.`]),
      ];
    case 'unpin':
      return [
        learnedRate === null ? 'There is no limit now.' : `The learned rate applies: ${formatRate(learnedRate)}.`,
      ];
    case 'block': {
      const end = command.time === undefined ? 'until unblocked' : `for ${Math.round(command.time / 1000)} s`;
      return [
        `No requests are sent ${end}: they are refused with 503 and a Retry-After. Requests in flight are completed.`,
      ];
    }
    case 'unblock':
      return ['Requests are sent again. If the upstream itself rejects everything, the next request is a probe.'];
  }
}

function formatRate(rate: PerSecond): string {
  return `${Number(rate.toPrecision(3))}/s`;
}

const NOTE_NESTED_LIMITS = 'Nested limits are not affected: a request needs a token of those too.';
const NOTE_REDIS_BLOCK = 'A block by the upstream itself is kept in Redis, and ends when a probe is accepted.';
