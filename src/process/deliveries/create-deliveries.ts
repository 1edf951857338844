import { routeName } from '../../config/schema/route-name.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import { DeliveryDispatcher } from '../../http/delivery/delivery-dispatcher.ts';
import type { ProxyDeliveries } from '../../http/delivery/delivery-intake.ts';
import type { Proxy } from '../../http/request/proxy.ts';
import { RemoteDeliveryStore } from '../../sharing/deliveries/remote-delivery-store.ts';
import type { DeliveryStoreHooks } from './open-delivery-store.ts';
import type { ActiveConfig } from '../active-config.ts';
import { openSharedDeliveries, type SharedDeliveriesParts } from './open-shared-deliveries.ts';

/** For routes that are no longer configured. */
const KEEP_FOR: Millis = 7 * 24 * 60 * 60 * 1000;

/** What the store uses from the moment when it is opened, before there are deliveries to be sent. */
export class DeliveryHooks implements DeliveryStoreHooks {
  readonly #config: () => Config;
  #deliveries: Pick<Deliveries, 'wake'> | undefined;

  /** @param config in effect */
  constructor(config: () => Config) {
    this.#config = config;
  }

  /** The deliveries are created. */
  bind(deliveries: Pick<Deliveries, 'wake'>): void {
    this.#deliveries = deliveries;
  }

  readonly keepFor = (route: string, end: DeliveryEnd): Millis => keepDeliveryFor(this.#config(), route, end);
  readonly maxAge = (): Millis => this.#config().limits.deliveryAge;
  readonly onDue = (): void => this.#deliveries?.wake();
}

/** How long a delivery of the route is kept after its end, by this configuration. */
export function keepDeliveryFor({ routes }: Config, route: string, end: DeliveryEnd): Millis {
  const found = routes.find((each) => routeName(each) === route);
  const hasFailed = end === 'dead' || end === 'unknown';
  if (found?.async !== undefined) return hasFailed ? found.async.keepFor.failed : found.async.keepFor.done;
  const keepFor = found?.deliver?.keepFor;
  if (keepFor === undefined) return KEEP_FOR;
  return hasFailed ? keepFor.dead : keepFor.delivered;
}

/** The deliveries of one process. */
export interface Deliveries {
  readonly store: DeliveryStore;
  /** What the proxy needs to accept them. */
  readonly intake: ProxyDeliveries;
  /** Some may be due: the process serves, or its configuration has changed. */
  readonly wake: () => void;
  /** No more attempts begin: the process ends. */
  readonly stop: () => void;
}

export interface DeliveriesParts extends Omit<SharedDeliveriesParts, keyof DeliveryStoreHooks> {
  /** What this process stores itself. */
  readonly state: { readonly deliveries?: DeliveryStore | undefined };
  readonly activeConfig: ActiveConfig;
  readonly random: Random;
  readonly deliveryHooks: DeliveryHooks;
}

/** Undefined without a store, of this process or of all replicas: nothing is delivered later. */
export async function createDeliveries(
  config: Config,
  proxy: () => Proxy,
  parts: DeliveriesParts,
): Promise<Deliveries | undefined> {
  const { state, activeConfig, random, listen, deliveryHooks } = parts;
  const { keepFor, maxAge, onDue } = deliveryHooks;
  const store = state.deliveries ?? (await openSharedDeliveries(config, { ...parts, keepFor, maxAge, onDue }));
  if (store === undefined) return undefined;
  const wallClock = (): Millis => Date.now();
  // The primary of several workers wakes one of them for what is due: not each of them for what it has accepted.
  const remote = store instanceof RemoteDeliveryStore ? store : undefined;
  const dispatcher = new DeliveryDispatcher({
    store,
    routes: () => activeConfig.snapshot.router.delivering,
    send: (...attempt) => proxy().deliver(...attempt),
    ...{ wallClock, schedule, random, listen },
    isWokenWhenDue: remote !== undefined,
  });
  // A drain has stopped it before.
  parts.resources.push(() => Promise.resolve(dispatcher.stop()));
  const wake = (): void => dispatcher.wake();
  remote?.onDue(wake);
  const deliveries = {
    store,
    intake: { store, wallClock, onAccepted: remote === undefined ? wake : () => undefined },
    wake,
    stop: () => {
      dispatcher.stop();
      remote?.stopTaking();
    },
  };
  deliveryHooks.bind(deliveries);
  return deliveries;
}

function schedule(delay: Millis, run: () => void): () => void {
  if (delay > 0) {
    const timer = setTimeout(run, delay);
    return () => clearTimeout(timer);
  }
  const immediate = setImmediate(run);
  return () => clearImmediate(immediate);
}
