import type { Logger } from 'pino';
import type { EventSink } from '../../core/events/proxy-events.ts';

/** A write has ended: counts its callback on this route, or logs that there was no room for it. */
export function reportCallback(route: string, isStored: boolean, logger: Logger, listen: EventSink): void {
  if (isStored) listen({ type: 'delivery', route, event: 'accepted' });
  else logger.warn({ route }, 'the state of a write is not sent to its client: the store of deliveries is full');
}
