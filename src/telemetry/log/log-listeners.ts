import type { Logger } from 'pino';
import type { EventSink, ProxyEvent } from '../../core/events/proxy-events.ts';
import { logDeliveries } from './delivery-log.ts';
import { type FailureDescriber, logRareEvents } from './event-log.ts';
import { logRequests } from './request-log.ts';

/** Write all lines about events. @param successes share of successful requests, and of delivered deliveries, that get a line */
export function logListeners(
  logger: Logger,
  failureOf: FailureDescriber,
  successes: () => number,
): readonly EventSink[] {
  return [logRequests(logger, successes), logRareEvents(logger, failureOf), logDeliveries(logger, successes)];
}

/** For `fanOutEvents`. */
export function logListenerErrors(logger: Logger): (error: unknown, event: ProxyEvent) => void {
  return (err, event) => logger.error({ err, event: event.type }, 'an event listener failed');
}
