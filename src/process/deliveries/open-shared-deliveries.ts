import type { Logger } from 'pino';
import type { Config } from '../../config/schema/config-schema.ts';
import { deliveryEnded } from '../../core/delivery/delivery-ended.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import type { RedisKeyConnection } from '../../sharing/redis/keys/redis-key-commands.ts';
import { MAX_REDIS_DELIVERY_EVENTS } from '../../sharing/redis/deliveries/redis-delivery-store-parts.ts';
import type { ResourceStack } from '../resource-stack.ts';
import type { DeliveryStoreHooks } from './open-delivery-store.ts';
import { reportCallback } from './report-callback.ts';
import { reportExpired } from './report-expired.ts';
import { warnOfLoss } from './warn-of-loss.ts';

/** The Redis of several replicas. */
export interface SharedDeliveryStore {
  readonly connection: RedisKeyConnection;
  /** The prefix of all keys. */
  readonly prefix: string;
  /** The maximum time for a response, at least. */
  readonly timeout: Millis;
  /** The name of this process, never used by another one. */
  readonly owner: string;
}

export interface SharedDeliveriesParts extends Omit<DeliveryStoreHooks, 'onDue'> {
  /** Deliveries may be due. */
  readonly onDue: () => void;
  readonly limitSharing: { readonly deliveryStore?: SharedDeliveryStore } | undefined;
  readonly resources: ResourceStack;
  readonly logger: Logger;
  readonly listen: EventSink;
}

/** How long the end of this process waits for its last changes to be stored. */
const STORED_WITHIN: Millis = 1000;

/** The deliveries of all replicas. Undefined without a shared store, or without a secret, which a route that stores requests needs. */
export async function openSharedDeliveries(
  { secret, limits, routes }: Pick<Config, 'secret' | 'limits' | 'routes'>,
  { limitSharing, resources, logger, listen, keepFor, maxAge, onDue }: SharedDeliveriesParts,
): Promise<DeliveryStore | undefined> {
  const shared = limitSharing?.deliveryStore;
  if (shared === undefined || secret === undefined) return undefined;
  if (routes.some(({ deliver, async }) => (deliver ?? async) !== undefined)) warnOfLoss(shared.connection, logger);
  const { RedisDeliveryStore } = await import('../../sharing/redis/deliveries/redis-delivery-store.ts');
  const store = new RedisDeliveryStore({
    ...{ ...shared, secret, keepFor, maxAge, onDue },
    ...{ maxCount: limits.deliveries, maxBytes: limits.deliveryBytes, maxEvents: MAX_REDIS_DELIVERY_EVENTS },
    wallClock: () => Date.now(),
    schedule: backgroundTimer,
    onExpired: (deliveries) => reportExpired(deliveries, logger, listen),
    onCallback: (route, isStored) => reportCallback(route, isStored, logger, listen),
    onUnreadable: (delivery, end) => {
      const { id, route } = delivery;
      listen(deliveryEnded({ ...delivery, lastAttempt: { reason: 'unreadable' } }, end, Date.now()));
      logger.error(
        { delivery: id, route },
        'a delivery cannot be read: the replicas have different secrets, or it is damaged in Redis',
      );
    },
  });
  resources.push(async () => {
    let cancel = (): void => undefined;
    const timeout = new Promise<void>((resolve) => (cancel = backgroundTimer(STORED_WITHIN, resolve)));
    await Promise.race([store.close(), timeout]);
    cancel();
  });
  return store;
}

/** Does not keep the process running. */
function backgroundTimer(delay: Millis, run: () => void): () => void {
  const timer = setTimeout(run, delay).unref();
  return () => clearTimeout(timer);
}
