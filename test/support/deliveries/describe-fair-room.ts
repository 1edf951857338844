/** The room of a store is shared among the senders of deliveries. */
import { describe, expect, test } from 'vitest';
import type { NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';
import { addAll, deliveryId, type DeliveryPlace, newDelivery, type StoreProcess } from './delivery-place.ts';

const ATTEMPT = { at: 1500, took: 20, status: 200, reason: undefined };
/** So many deliveries of one owner, from this number on. */
export const deliveriesOf = (
  owner: string,
  from: number,
  count: number,
  changes: Partial<NewDelivery> = {},
): NewDelivery[] => Array.from({ length: count }, (_, i) => newDelivery(from + i, { owner, ...changes }));

/** How many of them are stored. */
export async function countStored(process: StoreProcess, deliveries: readonly NewDelivery[]): Promise<number> {
  const results = await addAll(process, ...deliveries);
  return results.filter((result) => result?.kind === 'stored').length;
}

/** Takes all that are due, and ends them. */
async function endAll(process: StoreProcess, end: DeliveryEnd): Promise<void> {
  const { deliveries } = await process.store.takeDue('/hooks', 1000, 1000);
  for (const { delivery } of deliveries) process.store.end(delivery.id, end, 1500, ATTEMPT);
  await process.settle();
}

export function describeFairRoom(name: string, makePlace: () => DeliveryPlace): void {
  describe(`with deliveries in ${name}`, () => {
    test.each(['waiting', 'dead', 'unknown'] as const)(
      'a sender whose deliveries are %s leaves a ninth of their number to others, in the next process too',
      async (end) => {
        const place = makePlace();
        const process = await place.start({ maxCount: 90 });
        expect(await countStored(process, deliveriesOf('many', 1, 100))).toBe(80);
        if (end !== 'waiting') await endAll(process, end);
        expect(process.store.bounds[0]).toMatchObject({ reached: 20 });
        const next = await place.start({ maxCount: 90 });
        expect([
          await countStored(next, deliveriesOf('many', 201, 1)),
          await countStored(next, deliveriesOf('few', 301, 5)),
        ]).toEqual([0, 5]);
        expect(await countStored(next, deliveriesOf('second', 401, 10))).toBe(5);
      },
    );

    test('two senders leave a seventeenth of the number to others', async () => {
      const process = await makePlace().start({ maxCount: 170 });
      const both = Array.from({ length: 200 }, (_, n) => [
        ...deliveriesOf('one', 2 * n, 1),
        ...deliveriesOf('two', 2 * n + 1, 1),
      ]).flat();
      expect(await countStored(process, both)).toBe(160);
      expect(await countStored(process, deliveriesOf('few', 1000, 5))).toBe(5);
    });

    test('a sender leaves a ninth of the bytes to others', async () => {
      const process = await makePlace().start({ maxBytes: 90_000 });
      const large = (owner: string, from: number, count: number): NewDelivery[] =>
        deliveriesOf(owner, from, count, { message: { ...newDelivery(1).message, body: Buffer.alloc(800) } });
      const stored = await countStored(process, large('many', 1, 200));
      expect(stored).toBeLessThan(100);
      expect(process.store.totals.bytes).toBeGreaterThanOrEqual(80_000);
      expect(process.store.totals.bytes).toBeLessThan(81_000);
      expect(process.store.bounds[1]).toMatchObject({ reached: 200 - stored });
      expect(await countStored(process, large('few', 301, 5))).toBe(5);
    });

    test('clients of one address are one sender, whatever credentials they invent', async () => {
      const process = await makePlace().start({ maxCount: 90 });
      const invented = Array.from({ length: 100 }, (_, n) => newDelivery(n, { owner: `c${n}`, sender: 'address' }));
      expect([await countStored(process, invented), await countStored(process, deliveriesOf('few', 301, 5))]).toEqual([
        80, 5,
      ]);
    });

    test('a sender with a part of the room is not refused while more than an eighth of that is free', async () => {
      const process = await makePlace().start({ maxCount: 90 });
      expect(await countStored(process, deliveriesOf('many', 1, 40))).toBe(40);
      expect(await countStored(process, deliveriesOf('other', 101, 40))).toBe(40);
      expect(await countStored(process, deliveriesOf('many', 201, 5))).toBe(5);
    });

    test('a large delivery gets the room of many that are over', async () => {
      const process = await makePlace().start({ maxBytes: 90_000 });
      const small = deliveriesOf('many', 1, 800);
      for (let from = 0; from < small.length; from += 50) {
        await addAll(process, ...small.slice(from, from + 50));
        await endAll(process, 'delivered');
      }
      const { bytes, counts } = process.store.totals;
      expect(bytes).toBeGreaterThan(85_000);
      const body = Buffer.alloc(70_000);
      const large = newDelivery(1000, { message: { ...newDelivery(1).message, body } });
      expect(await countStored(process, [large])).toBe(1);
      expect(counts.delivered - process.store.totals.counts.delivered).toBeGreaterThan(100);
    });

    test('what one sender has stored and is over does not displace what few others have', async () => {
      const place = makePlace();
      const first = await place.start({ maxCount: 90 });
      await addAll(first, ...deliveriesOf('few', 1, 3));
      await endAll(first, 'delivered');
      for (let from = 100; from < 400; from += 50) {
        expect(await countStored(first, deliveriesOf('many', from, 50))).toBe(50);
        await endAll(first, 'delivered');
      }
      let process = first;
      const isStored = async (n: number): Promise<boolean> => (await process.store.find(deliveryId(n))) !== undefined;
      const few = (): Promise<boolean[]> => Promise.all([1, 2, 3].map(isStored));
      expect([await few(), first.store.totals.counts.delivered]).toEqual([[true, true, true], 90]);
      process = await place.start({ maxCount: 90 });
      expect(await countStored(process, deliveriesOf('third', 500, 60))).toBe(60);
      expect([await few(), await isStored(399)]).toEqual([[true, true, true], true]);
    });
  });
}
