import type { Logger } from 'pino';
import type { Config } from '../../config/schema/config-schema.ts';
import { deliveryEnded } from '../../core/delivery/delivery-ended.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import type { GroupCommit } from '../../store/sqlite/group-commit.ts';
import { reportCallback } from './report-callback.ts';
import { reportExpired } from './report-expired.ts';

/** What the store needs to know of the configuration in effect, and whom it notifies. */
export interface DeliveryStoreHooks {
  /** How long a delivery of the route, and its message, are kept once it is over. */
  readonly keepFor: (route: string, end: DeliveryEnd) => Millis;
  /** A delivery that waits for longer ends as dead. */
  readonly maxAge: () => Millis;
  /** A stored change may have made a delivery of the route due, now or later. */
  readonly onDue: (route: string) => void;
}

export interface DeliveryStoreParts extends DeliveryStoreHooks {
  readonly commit: GroupCommit;
  /** See `StoredWrites.clockShift`. */
  readonly clockShift: () => Millis;
  readonly secret: string;
  readonly limits: Pick<Config['limits'], 'deliveries' | 'deliveryBytes'>;
  readonly logger: Logger;
  readonly listen: EventSink;
  /** Deliveries of this route are stored, of one that is no longer configured too. */
  readonly onRoute: (route: string) => void;
}

/** The deliveries in the database of this process. @throws an error of SQLite */
export async function openDeliveryStore(parts: DeliveryStoreParts): Promise<DeliveryStore> {
  const { commit, clockShift, secret, limits, logger, listen, keepFor, maxAge, onDue, onRoute } = parts;
  const { SqliteDeliveryStore } = await import('../../store/deliveries/sqlite-delivery-store.ts');
  const store = new SqliteDeliveryStore({
    ...{ commit, secret, clockShift, keepFor, maxAge, onDue },
    wallClock: () => Date.now(),
    maxCount: limits.deliveries,
    maxBytes: limits.deliveryBytes,
    onUnreadable: (delivery, end) => {
      const { id, route } = delivery;
      listen(deliveryEnded({ ...delivery, lastAttempt: { reason: 'unreadable' } }, end, Date.now()));
      logger.error(
        { delivery: id, route },
        'a delivery cannot be read: the secret has changed, or the database is damaged',
      );
    },
    onExpired: (deliveries) => reportExpired(deliveries, logger, listen),
    onCallback: (route, isStored) => reportCallback(route, isStored, logger, listen),
    onProblem: (error) => logger.error({ why: messageOf(error) }, 'deliveries cannot be read from the database'),
  });
  for (const route of store.routes) onRoute(route);
  const { waiting } = store.totals.counts;
  if (waiting > 0) logger.info({ waiting }, 'restored deliveries');
  return store;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error';
}
