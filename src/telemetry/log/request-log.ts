import type { DestinationStream, Logger } from 'pino';
import { symbols } from 'pino';
import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import { evenShare } from './even-share.ts';
import { IsoTimeCache, formatRequestLine } from './request-log-line.ts';

/**
 * Writes one line per request, when it has ended: `info`, or `warn` if the upstream failed, if a write may have taken
 * effect, or if the body was truncated. A rejection is `info`: it is what the proxy is configured to do.
 * @param share current share of successful requests that get a line, spread evenly: 0 to 1. All others always get one
 */
export function logRequests(logger: Logger, share: () => number): EventSink {
  const destination = destinationOf(logger);
  const time = new IsoTimeCache();
  const bindingsJson = JSON.stringify(logger.bindings()).slice(1, -1);
  const bindings = bindingsJson === '' ? '' : `,${bindingsJson}`;
  const isInShare = evenShare(share);
  return (event) => {
    if (event.type !== 'done') return;
    const { record } = event;
    // The log has a line for the start and the end of an overload (event-log.ts); a line for each request would add to the load.
    if (record.reason === 'overloaded') return;
    if (isSuccess(record) && !isInShare()) return;
    const level = isFailure(record) ? 'warn' : 'info';
    if (!logger.isLevelEnabled(level)) return;
    destination.write(formatRequestLine({ level, time: time.at(Date.now()), bindings }, record));
  };
}

const SUCCESSES: ReadonlySet<RequestOutcome> = new Set(['forwarded', 'checked', 'accepted', 'preflight']);

function isSuccess({ outcome, status, isTruncated }: RequestRecord): boolean {
  return SUCCESSES.has(outcome) && status < 400 && !isTruncated;
}

function isFailure({ outcome, isTruncated, isAbandonedWrite }: RequestRecord): boolean {
  return outcome === 'upstream_error' || outcome === 'unknown' || isTruncated || isAbandonedWrite === true;
}

/** The destination of the logger, so that its lines and these stay in order. */
function destinationOf(logger: Logger): DestinationStream {
  const stream: unknown = Reflect.get(logger, symbols.streamSym);
  if (isDestination(stream)) return stream;
  throw new TypeError('the logger has no destination');
}

function isDestination(value: unknown): value is DestinationStream {
  return typeof value === 'object' && value !== null && 'write' in value && typeof value.write === 'function';
}
