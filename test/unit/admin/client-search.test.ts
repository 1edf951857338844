import { expect, test, vi } from 'vitest';
import { ClientSearch } from '../../../src/store/clients/client-search.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';

function fill(count: number): ClientTable {
  const table = new ClientTable(count, () => undefined);
  for (let i = 0; i < count; i += 1) {
    const slot = table.enter(`key${i}`, 1000 + (i % 7), 'till');
    table.leave(slot);
    if (i % 10 === 3) table.hold(slot, 10_000 + i, 1010);
    if (i % 10 === 6) {
      for (let again = 0; again < 10; again += 1) table.leave(table.enter(`key${i}`, 1010, 'till'));
      table.onRefused(slot, 0.1 + (i % 9) / 10, 1010);
    }
  }
  return table;
}

/** The reference: sorts all clients. */
function sortAll(table: ClientTable, now: number): string[] {
  const groups = ['held', 'backoff', 'cooldown', 'restoring', 'normal'];
  const rows = Array.from({ length: table.slots }, (_, slot) => {
    const state = table.stateAt(slot, now);
    const value =
      state === 'held'
        ? -table.heldUntil(slot)
        : state === 'normal'
          ? -table.demand(slot, now)
          : table.allowance(slot, now);
    return { group: groups.indexOf(state), value, slot };
  });
  rows.sort((a, b) => a.group - b.group || a.value - b.value || a.slot - b.slot);
  return rows.map(({ slot }) => table.nameOf(slot)[1]);
}

test.each([5, 50, 120])('pages of %i list every client once, worst state first', (limit) => {
  const table = fill(300);
  const seen: string[] = [];
  for (let after; ; ) {
    const search = new ClientSearch(table, { limit, after }, 1020).run();
    seen.push(...search.found.map(({ slot }) => table.nameOf(slot)[1]));
    after = search.found.at(-1);
    if (search.found.length < limit) break;
  }
  expect(seen).toEqual(sortAll(table, 1020));
});

test('filters by state, part of the key and upstream', () => {
  const table = fill(300);
  const find = (query: object): string[] => {
    const search = new ClientSearch(table, { limit: 500, ...query }, 1020).run();
    expect(search.matching).toBe(search.found.length);
    return search.found.map(({ slot }) => table.nameOf(slot)[1]);
  };
  expect(find({ state: 'held' })).toHaveLength(30);
  expect(find({ state: 'normal' })).toHaveLength(240);
  expect(find({ search: 'KEY29' }).toSorted()).toEqual(['key29', ...Array.from({ length: 10 }, (_, i) => `key29${i}`)]);
  expect(find({ upstream: 'other' })).toEqual([]);
  expect(new ClientSearch(table, { limit: 1 }, 1020).run().matching).toBe(300);
});

test('lists a client whose hold has just ended exactly once, among the normal clients', () => {
  const table = new ClientTable(10, () => undefined);
  for (const key of ['a', 'b', 'c']) table.leave(table.enter(key, 1000, 'till'));
  table.hold(1, 1010, 1000);
  expect(table.wasNormal(1)).toBe(false);
  const { found } = new ClientSearch(table, { limit: 10 }, 1020).run();
  expect(found.map(({ slot }) => slot).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
});

test('a search in steps finds the same clients as a search in one call', () => {
  const table = fill(300);
  const atOnce = new ClientSearch(table, { limit: 40 }, 1020).run();
  const inSteps = new ClientSearch(table, { limit: 40 }, 1020);
  while (inSteps.step(17));
  expect(inSteps.found).toEqual(atOnce.found);
});

test('finds the fifty worst of ten thousand clients without reading the records of the normal ones', () => {
  const table = fill(10_000);
  const methods = ['stateAt', 'heldUntil', 'allowance', 'demand'] as const;
  const spies = methods.map((method) => vi.spyOn(table, method));
  new ClientSearch(table, { limit: 50 }, 1020).run();
  const read = new Set(spies.flatMap(({ mock }) => mock.calls.map(([slot]) => slot)));
  expect(read.size).toBe(2000); // one in ten is held, one in ten reduced
});
