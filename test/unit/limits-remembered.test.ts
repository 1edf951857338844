import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { upstreamSettings } from '../support/policy.ts';

function storeOf(maxLimits: number): MemoryStore {
  const upstreams = [upstreamSettings({ scope: 'client' })];
  return new MemoryStore({ upstreams, maxTracked: 1000, maxLimits, random: () => 0.5, listen: () => undefined });
}

const of = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key });
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

  test('of many endpoints are bounded for each client: whoever makes up paths pushes out its own', () => {
    const rate = { initialRate: 10, maxRate: 10, minRate: 0.1, cooldown: 1000 };
    const nested = [{ name: 'endpoint', scope: 'client' as const, isKeyed: true, rate }];
    const forgotten: string[] = [];
    const store = new MemoryStore({
      upstreams: [upstreamSettings({ nested })],
      maxTracked: 1000,
      random: () => 0.5,
      listen: () => undefined,
      sharing: { adopt: () => undefined, forget: ({ ref }) => forgotten.push(ref.key), hold: () => undefined },
    });
    const at = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'client', key });
    const honest = store.find(at('honest charges'));
    const used = store.find(at('odd used'))!;
    const busy = store.find(at('odd busy'))!;
    busy.meter.sent(0);
    for (let i = 0; i < 5000; i += 1) {
      store.find(at(`odd made-up-${i}`));
      expect(store.find(at('odd used'))).toBe(used);
    }
    const keys = keysOf(store).filter((key) => key.startsWith('odd '));
    expect(keys.length).toBe(50);
    expect(keys).toContain('odd busy');
    expect(store.find(at('honest charges'))).toBe(honest);
    expect(boundOf(store)).toEqual({ name: 'client_limits', used: 51 / 1000, reached: 5002 - 50 });
    expect(new Set(forgotten).size).toBe(5002 - 50);
  });
});
