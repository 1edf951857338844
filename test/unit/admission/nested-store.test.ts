/** Nested limits in the store: across reloads, restarts and overrides. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { classLimitName } from '../../../src/core/limits/limit-ref.ts';
import { collectLearnedLimits } from '../../../src/store/persistence/learned-state.ts';
import type { Limit } from '../../../src/core/limits/limit.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { NestedLimitSettings } from '../../../src/store/upstream-nested-limits.ts';
import type { StateContext } from '../../../src/store/persistence/state-codec.ts';
import { decodeState, encodeState } from '../../../src/store/persistence/state-codec.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';

const RATE = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
const nested = (change: Partial<NestedLimitSettings> = {}): NestedLimitSettings => ({
  name: 'endpoint',
  scope: 'upstream',
  isKeyed: true,
  rate: RATE,
  ...change,
});
const ref = (key = '', name = 'endpoint'): LimitRef => ({ upstream: 'up', nested: name, scope: 'upstream', key });

function storeOf(
  settings: readonly NestedLimitSettings[],
  sharing?: ConstructorParameters<typeof MemoryStore>[0]['sharingHooks'],
) {
  return new MemoryStore({
    upstreams: [upstreamSettings({ nested: settings })],
    maxTracked: 100,
    random: () => 0.5,
    listen: () => undefined,
    ...(sharing === undefined ? {} : { sharingHooks: sharing }),
  });
}

describe('a reload', () => {
  const configure = (store: MemoryStore, settings: readonly NestedLimitSettings[]): void =>
    store.configure([upstreamSettings({ nested: settings })], 100);

  test('changes the rates of existing limits', () => {
    const store = storeOf([nested()]);
    const limit = store.findLimit(ref('a'))!;
    configure(store, [nested({ rate: { ...RATE, maxRate: 7 } })]);
    limit.meter.advance(1, false);
    expect([store.findLimit(ref('a')), limit.meter.rate(1)]).toEqual([limit, 7]);
  });

  test('removes a name when no request uses it any more, and notifies the sharing hooks', () => {
    const forgotten: Limit[] = [];
    const store = storeOf([nested()], {
      onLimitCreated: () => undefined,
      onLimitForgotten: (limit) => forgotten.push(limit),
      onClientHeld: () => undefined,
    });
    const limit = store.findLimit(ref('a'))!;
    limit.meter.onSent(0);
    configure(store, []);
    expect(store.findLimit(ref('a'))).toBeUndefined();
    expect(store.sweep()).toBe(false);
    expect([...store.limits()]).toContain(limit);
    limit.meter.onEnded(1);
    expect(store.sweep()).toBe(true);
    expect([...store.limits()]).not.toContain(limit);
    expect(forgotten).toEqual([limit]);
  });

  test('that removes a name and restores it continues with the limits still in use', () => {
    const store = storeOf([nested()]);
    const limit = store.findLimit(ref('a'))!;
    limit.meter.onSent(0);
    configure(store, []);
    configure(store, [nested({ rate: { ...RATE, maxRate: 5 } })]);
    expect(store.findLimit(ref('a'))).toBe(limit);
    limit.meter.advance(1, false);
    expect(limit.meter.rate(1)).toBe(5);
    expect([...store.limits()].filter((each) => each === limit)).toHaveLength(1);
  });

  test('that changes a scope starts with new limits', () => {
    const store = storeOf([nested()]);
    store.findLimit(ref('a'));
    configure(store, [nested({ scope: 'client' })]);
    expect(store.findLimit(ref('a'))).toBeUndefined();
    expect(store.sweep()).toBe(true);
    expect([...store.limits()].filter((limit) => limit.ref.nested !== '')).toEqual([]);
  });
});

describe('an operator', () => {
  test('pins and blocks only the limit of the upstream itself, and has nested limits probed at once', () => {
    const store = storeOf([nested()]);
    const limit = store.findLimit(ref('a'))!;
    store.applyOverride('up', { action: 'pin', rate: 5 }, 0);
    expect([store.findLimit(ref('', ''))!.meter.rate(0), limit.meter.rate(0)]).toEqual([5, Number.POSITIVE_INFINITY]);
    for (let i = 0; i < 10; i += 1) limit.meter.onFailed({ sentAt: i, retryAfterMs: undefined }, i);
    expect(limit.isBlocked(20)).toBe(true);
    expect(limit.meter.delay(20)).toBeGreaterThan(0);
    expect(store.applyOverride('up', { action: 'unblock' }, 20)).toContain(limit);
    expect(limit.meter.delay(20)).toBe(0);
  });
});

describe('the state file', () => {
  const context = (hashedBy?: string): StateContext => ({
    wallClock: 1_800_000_000_000,
    now: 5000,
    secretFingerprint: hashedBy,
    origins: new Map([['up', ['https://a']]]),
    unitOf: () => undefined,
  });

  function written(hashedBy?: string): string {
    const settings = [
      nested(),
      nested({ name: classLimitName('batch'), isKeyed: false, rate: { ...RATE, initialRate: 20, maxRate: 20 } }),
    ];
    const store = storeOf(settings);
    for (const key of ['charges', '#0123456789abcdef']) store.findLimit(ref(key))!.meter.resume?.(12, 15, 0);
    return encodeState(
      { limits: collectLearnedLimits(store.learnedViews(5000), () => undefined, 100, 5000), holds: [] },
      context(hashedBy),
    );
  }

  test('contains what nested limits learned, and no limit of a class', () => {
    const read = decodeState(written(), context());
    expect(read.kind === 'learned' && read.learned.limits.map((limit) => [limit.ref, limit.rate])).toEqual([
      [ref('charges'), 12],
    ]);
    const store = storeOf([nested()]);
    if (read.kind === 'learned') store.restore(read.learned, 0);
    expect(store.findLimit(ref('charges'))?.meter.rate(0)).toBe(12);
    const other = storeOf([]);
    if (read.kind === 'learned') other.restore(read.learned, 0);
    expect([...other.limits()].map((limit) => limit.ref.nested)).toEqual(['']);
  });

  test('contains hashed segments only if the next process uses the same hash', () => {
    const keys = (read: ReturnType<typeof decodeState>): unknown =>
      read.kind === 'learned' ? read.learned.limits.map((limit) => limit.ref.key) : read;
    expect(keys(decodeState(written('secret'), context('secret')))).toEqual(['charges', '#0123456789abcdef']);
    expect(keys(decodeState(written('secret'), context('another')))).toEqual(['charges']);
  });

  test('of an earlier version, without nested limits, is read', () => {
    const text = JSON.stringify({
      version: 1,
      writtenAt: new Date(1_800_000_000_000).toISOString(),
      upstreams: { up: { origins: ['https://a'] } },
      limits: [{ upstream: 'up', scope: 'upstream', key: '', rate: 40, ceiling: 50 }],
      holds: [],
    });
    const read = decodeState(text, context());
    expect(read.kind === 'learned' && read.learned.limits[0]?.ref).toEqual(ref('', ''));
  });
});
