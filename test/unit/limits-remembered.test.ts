import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/policy/limit-ref.ts';
import { MemoryStore } from '../../src/state/memory.ts';
import { upstreamSettings } from '../support/policy.ts';

function storeOf(maxLimits: number): MemoryStore {
  const upstreams = [upstreamSettings({ scope: 'client' })];
  return new MemoryStore({ upstreams, maxTracked: 1000, maxLimits, random: () => 0.5, listen: () => undefined });
}

const of = (key: string): LimitRef => ({ upstream: 'up', scope: 'client', key });
const boundOf = (store: MemoryStore) => store.bounds.find(({ name }) => name === 'client_limits');
const keysOf = (store: MemoryStore) => [...store.limits()].map(({ ref }) => ref.key);

describe('limits of single clients', () => {
  test('are as many as may be: the one used longest ago is forgotten', () => {
    const store = storeOf(3);
    for (const key of ['a', 'b', 'c']) store.make(of(key));
    store.find(of('a'));
    store.make(of('d'));
    expect(keysOf(store)).toEqual(['c', 'a', 'd']);
    expect(boundOf(store)).toEqual({ name: 'client_limits', used: 1, reached: 1 });
  });

  test('are not forgotten while a request is in flight, and may be afterwards', () => {
    const store = storeOf(2);
    const a = store.make(of('a'));
    a.meter.sent(0);
    for (const key of ['b', 'c', 'd']) store.make(of(key));
    expect(keysOf(store)).toEqual(['a', 'd']);
    a.meter.ended(0);
    for (const key of ['e', 'f']) store.make(of(key));
    expect(keysOf(store)).toEqual(['e', 'f']);
  });

  test('where all others are in use, the one that is made is not the one that is forgotten', () => {
    const store = storeOf(2);
    for (const key of ['a', 'b', 'c', 'd']) store.make(of(key)).meter.sent(0);
    store.make(of('e'));
    expect(keysOf(store)).toContain('e');
  });

  test('in use are as many as there are requests, and the search for another does not take longer for that', () => {
    const busy = 5000;
    const store = storeOf(busy);
    for (let i = 0; i < busy; i += 1) store.make(of(`busy-${i}`)).meter.sent(0);
    const since = performance.now();
    let most = 0;
    for (let i = 0; i < busy; i += 1) {
      store.make(of(`free-${i}`));
      most = Math.max(most, boundOf(store)?.used ?? 0);
    }
    // One look at each of those in use for every newcomer took minutes for 20 000.
    expect(performance.now() - since).toBeLessThan(5000);
    expect(most).toBeLessThan(1.05);
  });
});
