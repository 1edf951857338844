import type { Config } from '../../config/schema/config-schema.ts';
import { compileUpstreams } from '../../config/compile/compile-policy.ts';
import { routeName } from '../../config/schema/route-name.ts';
import type { QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import { type ClientQuotaInspection, CountedClientQuotas } from '../../core/quota/clients/client-quota-inspection.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { cancellableTimer } from '../../http/idempotency/create-key-store.ts';
import type { DeliveryOperation } from '../../sharing/deliveries/delivery-protocol.ts';
import { DeliveryServer } from '../../sharing/deliveries/delivery-server.ts';
import type { KeyOperation } from '../../sharing/keys/key-protocol.ts';
import { KeyServer } from '../../sharing/keys/key-server.ts';
import { WorkerOpenWrites } from '../../sharing/keys/worker-open-writes.ts';
import { computeQuotaClientCapacity } from '../../config/compile/capacities.ts';
import type { NumberedQuotaCall } from '../../sharing/quotas/primary-quotas.ts';
import { QuotaKeeper } from '../../sharing/quotas/quota-keeper.ts';
import { keepDeliveryFor } from '../deliveries/create-deliveries.ts';
import type { DeliveryStoreHooks } from '../deliveries/open-delivery-store.ts';
import { reportInterrupted } from '../interrupted-writes.ts';
import { openOwnState, type OwnState, type OwnStateParts, quotaParts } from '../own-state.ts';
import type { ResourceStack } from '../resource-stack.ts';
import type { MessageToWorker } from './worker-messages.ts';

export interface PrimaryStateParts extends Omit<OwnStateParts, 'deliveryHooks'> {
  readonly send: (worker: number, message: MessageToWorker) => void;
  /** In effect. */
  readonly config: () => Config;
  /** The process ends: no more attempts of deliveries begin. */
  readonly isDraining: () => boolean;
}

/** What the primary keeps for its workers: keys of writes, deliveries, and counts of quotas. */
export interface StateServer {
  readonly bounds: readonly ResourceBound[];
  readonly join: (worker: number) => void;
  /** All messages of a worker have arrived. */
  readonly leave: (worker: number) => void;
  /** A configuration comes into effect. */
  readonly configure: (config: Config) => void;
  readonly quotaViews: () => readonly QuotaView[];
  readonly clientQuotas: ClientQuotaInspection;
  /** Of the messages of workers. */
  readonly handlers: {
    readonly onKeyOperations: (worker: number, operations: readonly KeyOperation[]) => void;
    readonly onDeliveryOperations: (worker: number, operations: readonly DeliveryOperation[]) => void;
    readonly onQuotaCall: (worker: number, call: NumberedQuotaCall) => void;
  };
}

/** Opens the state of a primary, and what serves it to the workers. @throws StateDatabaseError */
export async function openPrimaryState(
  first: Config,
  { send, config, isDraining, ...parts }: PrimaryStateParts,
  resources: ResourceStack,
): Promise<{ readonly ownState: OwnState; readonly stateServer: StateServer }> {
  const deliveryHooks: DeliveryStoreHooks = {
    keepFor: (route, end) => keepDeliveryFor(config(), route, end),
    maxAge: () => config().limits.deliveryAge,
    onDue: (route) => deliveryServer?.onDue(route),
  };
  const ownState = await openOwnState(first, { ...parts, deliveryHooks }, resources);
  const { logger, listen } = parts;
  const { keyStore, responseStore, deliveries } = ownState;
  const openWrites = new WorkerOpenWrites(ownState.openWrites, (write) => reportInterrupted(write, logger, listen));
  const keyServer = new KeyServer(keyStore, (to, reply) => send(to, { type: 'key', reply }), openWrites, responseStore);
  const deliveryServer: DeliveryServer | undefined =
    deliveries &&
    new DeliveryServer({
      store: deliveries,
      concurrencyOf: (route) => (isDraining() ? 0 : concurrencyOf(config(), route)),
      wallClock: () => Date.now(),
      after: cancellableTimer,
      soon: queueMicrotask,
      send: (to, replies) => send(to, { type: 'deliveries', replies }),
    });
  resources.push(() => Promise.resolve(deliveryServer?.stop()));
  const { clock } = parts;
  const quotas = new QuotaKeeper(quotaParts(ownState, clock));
  // With Redis, Redis counts.
  const configure = (next: Config): void =>
    quotas.configure(next.state.store === 'redis' ? [] : compileUpstreams(next), computeQuotaClientCapacity(next));
  configure(first);
  const stateServer: StateServer = {
    get bounds() {
      const { bound } = quotas;
      return [...keyServer.bounds, ...(bound === undefined ? [] : [bound]), ...(deliveries?.bounds ?? [])];
    },
    join: (worker) => {
      keyServer.join(worker);
      quotas.join(worker);
      deliveryServer?.join(worker);
    },
    leave: (worker) => {
      keyServer.leave(worker);
      quotas.leave(worker);
      deliveryServer?.leave(worker);
    },
    configure,
    quotaViews: () => quotas.views(clock.now()),
    clientQuotas: new CountedClientQuotas(quotas.forClient, () => ({ now: clock.now(), at: Date.now() })),
    handlers: {
      onKeyOperations: (worker, operations) => keyServer.onOperations(worker, operations),
      onDeliveryOperations: (worker, operations) => deliveryServer?.onOperations(worker, operations),
      onQuotaCall: (worker, { number, call }) => {
        send(worker, { type: 'quota', terms: { number, terms: quotas.onCall(worker, call, clock.now()) } });
      },
    },
  };
  return { ownState, stateServer };
}

/** By the names of the routes of each configuration: it is asked for with each attempt. */
const CONCURRENCIES = new WeakMap<Config, ReadonlyMap<string, number>>();

/** How many deliveries of the route all workers together may send at a time. */
function concurrencyOf(config: Config, route: string): number {
  let concurrencies = CONCURRENCIES.get(config);
  if (concurrencies === undefined) {
    concurrencies = new Map(
      config.routes.map((each) => [routeName(each), (each.deliver ?? each.async)?.concurrency ?? 0]),
    );
    CONCURRENCIES.set(config, concurrencies);
  }
  return concurrencies.get(route) ?? 0;
}
