import { describe, expect, test } from 'vitest';
import { ClientNames } from '../../../src/admin/operations/client-names.ts';
import { RefusedClients, sumRefusals } from '../../../src/admin/operations/refused-clients.ts';

describe('the recent refusals of an upstream', () => {
  test('are counted by client', () => {
    const refused = new RefusedClients();
    for (const client of ['a', 'b', 'a', 'a']) refused.add(client, 1000);
    expect(refused.counts(1000)).toEqual({ total: 4, clients: new Map(Object.entries({ a: 3, b: 1 })) });
  });

  test('are dropped after five to ten seconds', () => {
    const refused = new RefusedClients();
    refused.add('a', 1000);
    refused.add('b', 5999);
    expect(refused.counts(6000).total).toBe(2);
    refused.add('c', 6000);
    expect([...refused.counts(10_999).clients.keys()]).toEqual(['a', 'b', 'c']);
    expect([...refused.counts(11_000).clients.keys()]).toEqual(['c']);
    expect(refused.counts(16_000)).toEqual({ total: 0, clients: new Map() });
  });

  test('show the client with most of them among any number of others, with a count that is at most a sixteenth too low', () => {
    const refused = new RefusedClients();
    for (let i = 0; i < 20_000; i += 1) {
      refused.add(`other-${i}`, 1000);
      refused.add('storm', 1000);
      refused.add('storm', 1000);
    }
    const { total, clients } = refused.counts(1000);
    expect(total).toBe(60_000);
    const counted = clients.get('storm') ?? 0;
    expect(counted).toBeLessThanOrEqual(40_000);
    expect(counted).toBeGreaterThanOrEqual(40_000 - 60_000 / 16);
    expect(clients.size).toBeLessThanOrEqual(15);
  });

  test('of several processes are added up', () => {
    const one = { total: 3, clients: new Map([['a', 2]]) };
    const two = { total: 5, clients: new Map(Object.entries({ a: 1, b: 4 })) };
    expect(sumRefusals([one, two])).toEqual({ total: 8, clients: new Map(Object.entries({ a: 3, b: 4 })) });
  });
});

describe('the names of clients', () => {
  test('are those of their last requests', () => {
    const names = new ClientNames();
    names.record('c0ffee', 'shop');
    names.record('beef', undefined);
    expect([names.of('c0ffee'), names.of('beef')]).toEqual(['shop', undefined]);
    names.record('c0ffee', 'batch');
    expect(names.of('c0ffee')).toBe('batch');
    names.record('c0ffee', undefined);
    expect(names.of('c0ffee')).toBeUndefined();
  });

  test('of 10,000 clients are kept', () => {
    const names = new ClientNames();
    for (let i = 0; i <= 10_000; i += 1) names.record(`client-${i}`, 'shop');
    expect(names.of('client-0')).toBeUndefined();
    expect(names.of('client-1')).toBe('shop');
    expect(names.of('client-10000')).toBe('shop');
  });
});
