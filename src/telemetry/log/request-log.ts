import type { DestinationStream, Logger } from 'pino';
import { symbols } from 'pino';
import type { Listen, RequestRecord } from '../../core/events/proxy-events.ts';
import { IsoTime, writeLine } from './request-log-line.ts';

/**
 * Writes one line a request, when it has ended: `info`, or `warn` where the upstream failed it, where a write may have
 * happened, or where the body was cut short. A refusal is `info`: to refuse is what we are asked to do.
 * @param share of requests that went well at once that get one, evenly: 0 to 1, as it is now. All others always do
 */
export function logRequests(logger: Logger, share: () => number): Listen {
  const destination = destinationOf(logger);
  const time = new IsoTime();
  const own = JSON.stringify(logger.bindings()).slice(1, -1);
  const bindings = own === '' ? '' : `,${own}`;
  let due = 0;
  return (event) => {
    if (event.type !== 'done') return;
    const { record } = event;
    // The log has a line for the start and the end of an overload (event-log.ts); a line for each request would add to the load.
    if (record.reason === 'overloaded') return;
    const successes = share();
    if (successes < 1 && isSuccess(record)) {
      due += successes;
      if (due < 1) return;
      due -= 1;
    }
    const level = isTrouble(record) ? 'warn' : 'info';
    if (!logger.isLevelEnabled(level)) return;
    destination.write(writeLine({ level, time: time.at(Date.now()), bindings }, record));
  };
}

function isSuccess({ outcome, status, cut }: RequestRecord): boolean {
  return (outcome === 'forwarded' || outcome === 'checked' || outcome === 'preflight') && status < 400 && !cut;
}

function isTrouble({ outcome, cut }: RequestRecord): boolean {
  return outcome === 'upstream_error' || outcome === 'unknown' || cut;
}

/** Where a logger writes to, so that lines of both go there in their order. */
function destinationOf(logger: Logger): DestinationStream {
  const stream: unknown = Reflect.get(logger, symbols.streamSym);
  if (isDestination(stream)) return stream;
  throw new TypeError('a logger without a destination');
}

function isDestination(value: unknown): value is DestinationStream {
  return typeof value === 'object' && value !== null && 'write' in value && typeof value.write === 'function';
}
