import type { Logger } from 'pino';
import type { Decision, Listen, RequestRecord } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';

/**
 * Writes one line a request, when it has ended: `info`, or `warn` where the upstream failed it, where a write may have
 * happened, or where the body was cut short. A refusal is `info`: to refuse is what we are asked to do.
 */
export function logRequests(logger: Logger): Listen {
  return (event) => {
    if (event.type !== 'done') return;
    const { record } = event;
    // Of an overload its begin and its end are told (see change-log.ts): a line for each would add to it.
    if (record.reason === 'overloaded') return;
    if (isTrouble(record)) logger.warn(describe(record), 'request');
    else logger.info(describe(record), 'request');
  };
}

function isTrouble({ outcome, cut }: RequestRecord): boolean {
  return outcome === 'upstream_error' || outcome === 'unknown' || cut;
}

function describe(record: RequestRecord): Record<string, unknown> {
  return {
    id: record.id,
    route: record.route,
    upstream: record.upstream === '' ? undefined : record.upstream,
    method: record.method,
    path: withoutQuery(record.path),
    client: record.client === '' ? undefined : record.client,
    status: record.status,
    outcome: record.outcome,
    reason: record.reason,
    cause: record.cause,
    attempts: record.attempts,
    queuedMs: tenths(record.queued),
    sleptMs: tenths(record.slept),
    ms: tenths(record.took),
    retryAfter: record.retryAfter,
    cut: record.cut ? true : undefined,
    bytesToUpstream: record.carried?.toUpstream,
    bytesToClient: record.carried?.toClient,
    wouldHave: record.wouldHave === undefined ? undefined : tellDecision(record.wouldHave),
    wouldRetry: record.wouldRetry,
  };
}

/** `passed`, `queued`, or `refused over_share`. */
function tellDecision({ decision, why }: Decision): string {
  return why === undefined ? decision : `${decision} ${why}`;
}

/** The record's path has no query; should one slip in, it stops here: queries carry secrets, and logs are kept. */
function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query === -1 ? path : path.slice(0, query);
}

function tenths(duration: Millis): number {
  return Math.round(duration * 10) / 10;
}
