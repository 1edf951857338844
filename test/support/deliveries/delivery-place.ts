/** What a store of deliveries needs to be tested: a place that outlives its processes, a clock, and turns of the event loop. */
import type { AddResult, DeliveryStore, NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';

export interface StoreBounds {
  readonly maxCount?: number;
  readonly maxBytes?: number;
  readonly maxEvents?: number;
}

export interface StoreSettings extends StoreBounds {
  readonly secret?: string;
}

/** A process that uses the store. */
export interface StoreProcess {
  readonly store: DeliveryStore;
  /** Ends the turn of the event loop: all changes so far are stored, and their callbacks have run. */
  readonly settle: () => Promise<void>;
  /** The routes that the store has reported as changed since the last call. */
  readonly reportedDue: () => readonly string[];
  /** Whether `retry` and `cancel` resolve once the change is stored, and not already once it is accepted. */
  readonly isChangedAtOnce?: boolean;
  /** The deliveries whose messages could not be read. */
  readonly unreadable: string[];
  /** The routes of the callbacks of ended writes, and whether these are stored. */
  readonly callbacks: (readonly [route: string, isStored: boolean])[];
}

export interface DeliveryPlace {
  /** The wall clock. */
  readonly clock: { time: number };
  /** How long deliveries are kept once they are over. */
  readonly keptFor: Record<DeliveryEnd, number>;
  /** Begins a process; the one before is killed, and has stored what was settled. */
  readonly start: (settings?: StoreSettings) => StoreProcess | Promise<StoreProcess>;
}

/** A place whose processes begin at once. */
export interface LocalDeliveryPlace extends DeliveryPlace {
  readonly start: (settings?: StoreSettings) => StoreProcess;
}

/** A UUID of version 7, of which those with greater numbers are greater. */
export function deliveryId(n: number): string {
  const digits = n.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-000000000000`;
}

export function newDelivery(n: number, changes: Partial<NewDelivery> = {}): NewDelivery {
  const { acceptedAt = 1000, owner = 'ab12' } = changes;
  return {
    kind: 'message',
    ...{ id: deliveryId(n), route: '/hooks', upstream: 'shop', acceptedAt, owner, sender: owner },
    ...{ eventId: undefined, orderKey: undefined, duplicatesUntil: acceptedAt + 1000 },
    message: {
      method: 'POST',
      target: `/hooks?n=${n}`,
      headers: ['Host', 'tidegate.test', 'Content-Type', 'application/json'],
      body: Buffer.from(`{"n":${n}}`),
      peer: '192.0.2.1',
    },
    ...changes,
  };
}

/** Adds deliveries in one turn. */
export async function addAll(
  { store, settle }: StoreProcess,
  ...deliveries: readonly NewDelivery[]
): Promise<readonly (AddResult | undefined)[]> {
  const results: (AddResult | undefined)[] = deliveries.map(() => undefined);
  for (const [i, delivery] of deliveries.entries()) store.add(delivery, (result) => (results[i] = result));
  await settle();
  return results;
}

/** The numbers of the deliveries of `/hooks` that are due at this time: they are claimed. */
export async function takeNumbers(
  { store }: Pick<StoreProcess, 'store'>,
  now: number,
  limit = 100,
  route = '/hooks',
): Promise<number[]> {
  const { deliveries } = await store.takeDue(route, now, limit);
  return deliveries.map(({ delivery }) => numberOf(delivery.id));
}

/** When the next one of the route is due. Claims none. */
export async function nextDueAt(store: DeliveryStore, route: string): Promise<number | undefined> {
  return (await store.takeDue(route, 0, 0)).nextDueAt;
}

export function numberOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
