import type { Logger } from 'pino';
import type { Delivery } from '../../core/delivery/delivery.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';

/** Counts deliveries that have ended because of `limits.deliveryAge`, writes as unknown, and logs a line for each of their routes. */
export function reportExpired(
  deliveries: readonly Pick<Delivery, 'kind' | 'route' | 'acceptedAt'>[],
  logger: Logger,
  listen: EventSink,
): void {
  const now = Date.now();
  const counts = new Map<string, number>();
  for (const { kind, route, acceptedAt } of deliveries) {
    listen({ type: 'delivery', route, event: kind === 'write' ? 'unknown' : 'dead', age: now - acceptedAt });
    counts.set(route, (counts.get(route) ?? 0) + 1);
  }
  for (const [route, expired] of counts) {
    logger.error(
      { route, deliveries: expired },
      'deliveries have waited for longer than limits.deliveryAge: messages are dead, async writes are unknown',
    );
  }
}
