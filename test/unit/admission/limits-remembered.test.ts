import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';

function storeOf(maxLimits: number): MemoryStore {
  const upstreams = [upstreamSettings({ scope: 'client' })];
  return new MemoryStore({ upstreams, maxTracked: 1000, maxLimits, random: () => 0.5, listen: () => undefined });
}

const of = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key });
const boundOf = (store: MemoryStore) => store.bounds.find(({ name }) => name === 'client_limits');
const keysOf = (store: MemoryStore) => [...store.limits()].map(({ ref }) => ref.key);

describe('per-client limits', () => {
  test('are bounded: the least recently used one is evicted', () => {
    const store = storeOf(3);
    for (const key of ['a', 'b', 'c']) store.findOrCreateLimit(of(key));
    store.findLimit(of('a'));
    store.findOrCreateLimit(of('d'));
    expect(keysOf(store)).toEqual(['c', 'a', 'd']);
    expect(boundOf(store)).toEqual({ name: 'client_limits', used: 1, reached: 1 });
  });

  test('are not evicted while a request is in flight, and may be evicted afterwards', () => {
    const store = storeOf(2);
    const a = store.findOrCreateLimit(of('a'));
    a.meter.onSent(0);
    for (const key of ['b', 'c', 'd']) store.findOrCreateLimit(of(key));
    expect(keysOf(store)).toEqual(['a', 'd']);
    a.meter.onEnded(0);
    for (const key of ['e', 'f']) store.findOrCreateLimit(of(key));
    expect(keysOf(store)).toEqual(['e', 'f']);
  });

  test('do not evict the newest one while all others are in use', () => {
    const store = storeOf(2);
    for (const key of ['a', 'b', 'c', 'd']) store.findOrCreateLimit(of(key)).meter.onSent(0);
    store.findOrCreateLimit(of('e'));
    expect(keysOf(store)).toContain('e');
  });

  test('hardly exceed the bound while as many are in use, and are created without a scan of those in use', () => {
    const busy = 5000;
    const store = storeOf(busy);
    let examined = 0;
    for (let i = 0; i < busy; i += 1) {
      const { meter } = store.findOrCreateLimit(of(`busy-${i}`));
      Object.defineProperty(meter, 'inFlight', {
        get: () => {
          examined += 1;
          return 1;
        },
      });
    }
    let most = 0;
    for (let i = 0; i < busy; i += 1) {
      store.findOrCreateLimit(of(`free-${i}`));
      most = Math.max(most, boundOf(store)?.used ?? 0);
    }
    // A scan of all limits in use for each newcomer examined 5000 at a time.
    expect(examined / busy).toBeLessThanOrEqual(32);
    expect(most).toBeLessThan(1.05);
  });

  test('of many endpoints are bounded for each client: a client that invents paths evicts its own limits', () => {
    const rate = { initialRate: 10, maxRate: 10, minRate: 0.1, cooldown: 1000 };
    const nested = [{ name: 'endpoint', scope: 'client' as const, isKeyed: true, rate }];
    const forgotten: string[] = [];
    const store = new MemoryStore({
      upstreams: [upstreamSettings({ nested })],
      maxTracked: 1000,
      random: () => 0.5,
      listen: () => undefined,
      sharingHooks: {
        onLimitCreated: () => undefined,
        onLimitForgotten: ({ ref }) => forgotten.push(ref.key),
        onClientHeld: () => undefined,
      },
    });
    const at = (key: string): LimitRef => ({ upstream: 'up', nested: 'endpoint', scope: 'client', key });
    const honest = store.findLimit(at('honest charges'));
    const used = store.findLimit(at('odd used'))!;
    const busy = store.findLimit(at('odd busy'))!;
    busy.meter.onSent(0);
    for (let i = 0; i < 5000; i += 1) {
      store.findLimit(at(`odd made-up-${i}`));
      expect(store.findLimit(at('odd used'))).toBe(used);
    }
    const keys = keysOf(store).filter((key) => key.startsWith('odd '));
    expect(keys.length).toBe(50);
    expect(keys).toContain('odd busy');
    expect(store.findLimit(at('honest charges'))).toBe(honest);
    expect(boundOf(store)).toEqual({ name: 'client_limits', used: 51 / 1000, reached: 5002 - 50 });
    expect(new Set(forgotten).size).toBe(5002 - 50);
  });
});
