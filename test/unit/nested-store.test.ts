/** What a store keeps of nested limits: across reloads, restarts and orders. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { ofClass } from '../../src/core/limits/limit-ref.ts';
import { learnedOf } from '../../src/store/persistence/learned-state.ts';
import type { Limit } from '../../src/core/limits/limit.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import type { NestedSettings } from '../../src/store/upstream-nested-limits.ts';
import type { StateContext } from '../../src/store/persistence/state-codec.ts';
import { readState, writeState } from '../../src/store/persistence/state-codec.ts';
import { upstreamSettings } from '../support/policy.ts';

const RATE = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
const nested = (change: Partial<NestedSettings> = {}): NestedSettings => ({
  name: 'endpoint',
  scope: 'upstream',
  isKeyed: true,
  rate: RATE,
  ...change,
});
const ref = (key = '', name = 'endpoint'): LimitRef => ({ upstream: 'up', nested: name, scope: 'upstream', key });

function storeOf(
  settings: readonly NestedSettings[],
  sharing?: ConstructorParameters<typeof MemoryStore>[0]['sharing'],
) {
  return new MemoryStore({
    upstreams: [upstreamSettings({ nested: settings })],
    maxTracked: 100,
    random: () => 0.5,
    listen: () => undefined,
    ...(sharing === undefined ? {} : { sharing }),
  });
}

describe('a reload', () => {
  const configure = (store: MemoryStore, settings: readonly NestedSettings[]): void =>
    store.configure([upstreamSettings({ nested: settings })], 100);

  test('changes rates of limits that are there', () => {
    const store = storeOf([nested()]);
    const limit = store.find(ref('a'))!;
    configure(store, [nested({ rate: { ...RATE, maxRate: 7 } })]);
    limit.meter.advance(1, false);
    expect([store.find(ref('a')), limit.meter.rate(1)]).toEqual([limit, 7]);
  });

  test('lets go of a name when nobody stands under it any more, and tells who shares it', () => {
    const forgotten: Limit[] = [];
    const store = storeOf([nested()], {
      adopt: () => undefined,
      forget: (limit) => forgotten.push(limit),
      hold: () => undefined,
    });
    const limit = store.find(ref('a'))!;
    limit.meter.sent(0);
    configure(store, []);
    expect(store.find(ref('a'))).toBeUndefined();
    expect(store.sweep()).toBe(false);
    expect([...store.limits()]).toContain(limit);
    limit.meter.ended(1);
    expect(store.sweep()).toBe(true);
    expect([...store.limits()]).not.toContain(limit);
    expect(forgotten).toEqual([limit]);
  });

  test('that takes a name away and brings it back goes on with the limits that are still in use', () => {
    const store = storeOf([nested()]);
    const limit = store.find(ref('a'))!;
    limit.meter.sent(0);
    configure(store, []);
    configure(store, [nested({ rate: { ...RATE, maxRate: 5 } })]);
    expect(store.find(ref('a'))).toBe(limit);
    limit.meter.advance(1, false);
    expect(limit.meter.rate(1)).toBe(5);
    expect([...store.limits()].filter((each) => each === limit)).toHaveLength(1);
  });

  test('of another scope begins anew', () => {
    const store = storeOf([nested()]);
    store.find(ref('a'));
    configure(store, [nested({ scope: 'client' })]);
    expect(store.find(ref('a'))).toBeUndefined();
    expect(store.sweep()).toBe(true);
    expect([...store.limits()].filter((limit) => limit.ref.nested !== '')).toEqual([]);
  });
});

describe('an operator', () => {
  test('pins and blocks the upstream’s own limit, and has nested ones asked at once', () => {
    const store = storeOf([nested()]);
    const limit = store.find(ref('a'))!;
    store.steer('up', { do: 'pin', rate: 5 }, 0);
    expect([store.find(ref('', ''))!.meter.rate(0), limit.meter.rate(0)]).toEqual([5, Number.POSITIVE_INFINITY]);
    for (let i = 0; i < 10; i += 1) limit.meter.failed({ sentAt: i, retryAfter: undefined }, i);
    expect(limit.isBlocked(20)).toBe(true);
    expect(limit.meter.delay(20)).toBeGreaterThan(0);
    expect(store.steer('up', { do: 'unblock' }, 20)).toContain(limit);
    expect(limit.meter.delay(20)).toBe(0);
  });
});

describe('the state file', () => {
  const context = (hashedBy?: string): StateContext => ({
    wallClock: 1_800_000_000_000,
    now: 5000,
    hashedBy,
    origins: new Map([['up', ['https://a']]]),
  });

  function written(hashedBy?: string): string {
    const settings = [
      nested(),
      nested({ name: ofClass('batch'), isKeyed: false, rate: { ...RATE, initialRate: 20, maxRate: 20 } }),
    ];
    const store = storeOf(settings);
    for (const key of ['charges', '#0123456789abcdef']) store.find(ref(key))!.meter.resume?.(12, 15, 0);
    return writeState(
      { limits: learnedOf(store.learned(5000), () => undefined, 100, 5000), holds: [] },
      context(hashedBy),
    );
  }

  test('has what nested limits learned, and nothing of a class', () => {
    const read = readState(written(), context());
    expect(read.kind === 'learned' && read.learned.limits.map((limit) => [limit.ref, limit.rate])).toEqual([
      [ref('charges'), 12],
    ]);
    const store = storeOf([nested()]);
    if (read.kind === 'learned') store.restore(read.learned, 0);
    expect(store.find(ref('charges'))?.meter.rate(0)).toBe(12);
    const other = storeOf([]);
    if (read.kind === 'learned') other.restore(read.learned, 0);
    expect([...other.limits()].map((limit) => limit.ref.nested)).toEqual(['']);
  });

  test('has hashed segments only where the next process hashes alike', () => {
    const keys = (read: ReturnType<typeof readState>): unknown =>
      read.kind === 'learned' ? read.learned.limits.map((limit) => limit.ref.key) : read;
    expect(keys(readState(written('secret'), context('secret')))).toEqual(['charges', '#0123456789abcdef']);
    expect(keys(readState(written('secret'), context('another')))).toEqual(['charges']);
  });

  test('of a version before, without nested limits, is read', () => {
    const text = JSON.stringify({
      version: 1,
      writtenAt: new Date(1_800_000_000_000).toISOString(),
      upstreams: { up: { origins: ['https://a'] } },
      limits: [{ upstream: 'up', scope: 'upstream', key: '', rate: 40, ceiling: 50 }],
      holds: [],
    });
    const read = readState(text, context());
    expect(read.kind === 'learned' && read.learned.limits[0]?.ref).toEqual(ref('', ''));
  });
});
