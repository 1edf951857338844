import type { DeliveryStore } from '../core/delivery/delivery-store.ts';
import type { EventSink } from '../core/events/proxy-events.ts';
import type { Millis, Random } from '../core/scalars.ts';
import { DeliveryDispatcher } from '../http/delivery/delivery-dispatcher.ts';
import type { Proxy, ProxyDeliveries } from '../http/request/proxy.ts';
import type { ActiveConfig } from './active-config.ts';

/** The deliveries of one process. */
export interface Deliveries {
  /** What the proxy needs to accept them. */
  readonly intake: ProxyDeliveries;
  /** Some may be due: the process serves, or its configuration has changed. */
  readonly wake: () => void;
  /** No more attempts begin: the process ends. */
  readonly stop: () => void;
}

export interface DeliveriesParts {
  readonly proxy: () => Proxy;
  readonly activeConfig: ActiveConfig;
  readonly random: Random;
  readonly listen: EventSink;
}

/** @param store undefined: nothing is delivered later */
export function createDeliveries(
  store: DeliveryStore | undefined,
  { proxy, activeConfig, random, listen }: DeliveriesParts,
): Deliveries | undefined {
  if (store === undefined) return undefined;
  const wallClock = (): Millis => Date.now();
  const dispatcher = new DeliveryDispatcher({
    store,
    routes: () => activeConfig.snapshot.router.delivering,
    send: (...attempt) => proxy().deliver(...attempt),
    ...{ wallClock, random, listen },
  });
  const wake = (): void => dispatcher.wake();
  return { intake: { store, wallClock, onAccepted: wake }, wake, stop: () => dispatcher.stop() };
}
