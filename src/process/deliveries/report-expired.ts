import type { Logger } from 'pino';
import type { Delivery } from '../../core/delivery/delivery.ts';
import { deliveryEnded } from '../../core/delivery/delivery-ended.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';

/** Counts deliveries that have ended because of `limits.deliveryAge`, writes as unknown, and logs a line for each of their routes. */
export function reportExpired(deliveries: readonly Omit<Delivery, 'state'>[], logger: Logger, listen: EventSink): void {
  const now = Date.now();
  const counts = new Map<string, number>();
  for (const delivery of deliveries) {
    const { kind, route } = delivery;
    const expired = { ...delivery, lastAttempt: { reason: 'expired' } };
    listen(deliveryEnded(expired, kind === 'write' ? 'unknown' : 'dead', now));
    counts.set(route, (counts.get(route) ?? 0) + 1);
  }
  for (const [route, expired] of counts) {
    logger.error(
      { route, deliveries: expired },
      'deliveries have waited for longer than limits.deliveryAge: messages are dead, async writes are unknown',
    );
  }
}
