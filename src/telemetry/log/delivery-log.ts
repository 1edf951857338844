import type { Logger } from 'pino';
import type { DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import { evenShare } from './even-share.ts';

/** A person has to look at these: a message that nobody has acknowledged, a write that may have taken effect. */
const LEVELS: Readonly<Record<DeliveryEnd, 'info' | 'error'>> = {
  delivered: 'info',
  canceled: 'info',
  dead: 'error',
  unknown: 'error',
};

/**
 * Writes one line for the end of each delivery.
 * @param share of those delivered that get a line, as of successful requests: 0 to 1. All others always get one
 */
export function logDeliveries(logger: Logger, share: () => number): EventSink {
  const isInShare = evenShare(share);
  return (event) => {
    if (event.type !== 'delivery' || event.ended === undefined) return;
    const { route, event: outcome, age, ended } = event;
    if (!isEnd(outcome) || (outcome === 'delivered' && !isInShare())) return;
    const { id: delivery, upstream, attempts, status, reason } = ended;
    const ms = age === undefined ? undefined : Math.max(0, Math.round(age));
    logger[LEVELS[outcome]]({ delivery, route, upstream, outcome, attempts, status, reason, ms }, 'delivery ended');
  };
}

function isEnd(event: string): event is DeliveryEnd {
  return event in LEVELS;
}
