/** Workers whose deliveries a primary keeps, with their channel: messages are copied as Node copies them, and arrive in a later turn. */
import { deserialize, serialize } from 'node:v8';
import type { DeliveryStore } from '../../../src/core/delivery/delivery-store.ts';
import { DeliveryServer } from '../../../src/sharing/deliveries/delivery-server.ts';
import { RemoteDeliveryStore } from '../../../src/sharing/deliveries/remote-delivery-store.ts';
import type { DeliveryPlace, LocalDeliveryPlace, StoreProcess, StoreSettings } from './delivery-place.ts';
import { sqlitePlace } from './sqlite-place.ts';

export interface DeliveryWorker {
  readonly number: number;
  readonly store: RemoteDeliveryStore;
  /** How often it was woken. */
  readonly wakes: () => number;
  /** Its process is killed: the messages that it has sent arrive. */
  readonly kill: () => void;
  /** Its channel closes because the primary was killed. */
  readonly losePrimary: () => void;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** @param store of the primary. @param clock the wall clock, and the clock of the timers */
export function makeDeliveryWorkers(store: DeliveryStore, clock: { time: number }, concurrency = 1000) {
  const clients = new Map<number, RemoteDeliveryStore>();
  const timers = new Set<Timer>();
  /** Messages that have not arrived. */
  const pending = new Set<object>();
  const later = (run: () => void): void => {
    const each = {};
    pending.add(each);
    setImmediate(() => {
      pending.delete(each);
      run();
    });
  };
  const settings = { concurrency };
  const server = new DeliveryServer({
    store,
    concurrencyOf: () => settings.concurrency,
    wallClock: () => clock.time,
    soon: queueMicrotask,
    after: (delay, run) => {
      const timer = { at: clock.time + delay, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    send: (to, replies) => {
      const copy = deserialize(serialize(replies)) as typeof replies;
      later(() => clients.get(to)?.onReplies(copy));
    },
  });
  const startWorker = (): DeliveryWorker => {
    const number = clients.size + 1;
    let wakes = 0;
    let isAlive = true;
    const client = new RemoteDeliveryStore({
      schedule: later,
      send: (operations) => {
        const copy = deserialize(serialize(operations)) as typeof operations;
        if (isAlive) later(() => server.onOperations(number, copy));
      },
    });
    client.onDue(() => (wakes += 1));
    clients.set(number, client);
    server.join(number);
    return {
      ...{ number, store: client, wakes: () => wakes },
      kill: () => {
        isAlive = false;
        later(() => server.leave(number));
      },
      losePrimary: () => client.onKeeperGone(),
    };
  };
  /** Resolves when all messages have arrived, and have been answered. */
  const delivered = async (): Promise<void> => {
    do await new Promise(setImmediate);
    while (pending.size > 0);
  };
  /** Lets time pass, and runs the timers that are due. */
  const pass = async (time: number): Promise<void> => {
    clock.time += time;
    for (const timer of timers) {
      if (timer.at > clock.time) continue;
      timers.delete(timer);
      timer.run();
    }
    await delivered();
  };
  return { server, settings, startWorker, delivered, pass, timers };
}

/** A primary with SQLite and its workers. */
export function startDeliveryWorkers(place: LocalDeliveryPlace, concurrency?: number, settings?: StoreSettings) {
  const primary = place.start(settings);
  const workers = makeDeliveryWorkers(primary.store, place.clock, concurrency);
  /** All changes so far are stored, and what they lead to has happened. */
  const settle = async (): Promise<readonly string[]> => {
    await workers.delivered();
    await primary.settle();
    const due = primary.reportedDue();
    for (const route of due) workers.server.onDue(route);
    await workers.delivered();
    return due;
  };
  return { ...workers, primary, settle };
}

/** The store of one worker. The primary reports what is stored in all, and which routes have changed. */
export function workersPlace(): DeliveryPlace {
  const { start: startPrimary, ...place } = sqlitePlace();
  let endFormer = (): void => undefined;
  const start = (settings: StoreSettings = {}): StoreProcess => {
    endFormer();
    const { primary, server, startWorker, settle } = startDeliveryWorkers(
      { ...place, start: startPrimary },
      1000,
      settings,
    );
    const { store } = startWorker();
    endFormer = () => server.stop();
    const due = new Set<string>();
    const reported = {
      bounds: { get: () => primary.store.bounds },
      totals: { get: () => primary.store.totals },
    };
    return {
      store: Object.defineProperties(store, reported),
      settle: async () => {
        for (const route of await settle()) due.add(route);
      },
      reportedDue: () => {
        const routes = [...due];
        due.clear();
        return routes;
      },
      unreadable: primary.unreadable,
      callbacks: primary.callbacks,
    };
  };
  return { ...place, start };
}
