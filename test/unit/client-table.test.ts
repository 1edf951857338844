import { describe, expect, test } from 'vitest';
import type { ClientSlot } from '../../src/core/admission/client-allowance.ts';
import type { TideEvent } from '../../src/core/events/proxy-events.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { Hold } from '../../src/sharing/workers/worker-protocol.ts';
import { ClientTable } from '../../src/store/clients/client-table.ts';

class Trial {
  readonly events: TideEvent[] = [];
  readonly table: ClientTable;

  constructor(maxTracked = 100) {
    this.table = new ClientTable(maxTracked, (event) => {
      this.events.push(event);
    });
  }

  /** One request, come and gone. */
  visit(name: string, now: Millis): ClientSlot {
    const slot = this.table.enter(keyOf(name), now);
    this.table.leave(slot);
    return slot;
  }

  /** `count` requests at once; the last of them is not over. */
  flood(name: string, count: number, now: Millis): ClientSlot {
    for (let i = 1; i < count; i += 1) this.visit(name, now);
    return this.table.enter(keyOf(name), now);
  }

  /** From, to, as told. */
  get transitions(): string[] {
    return this.events.flatMap((event) => (event.type === 'client-state' ? [`${event.from} > ${event.to}`] : []));
  }

  get evictions(): string[] {
    return this.events.flatMap((event) => (event.type === 'client-evicted' ? [event.cause] : []));
  }

  tracks(name: string, now: Millis): boolean {
    // A client that is known has been here before.
    const slot = this.table.enter(keyOf(name), now);
    const known = this.table.previousArrival(slot) > Number.NEGATIVE_INFINITY;
    this.table.leave(slot);
    return known;
  }
}

function keyOf(name: string): string {
  return `up\0${name}`;
}

describe('demand', () => {
  test('is arrivals a second, forgotten with a time of 2 s', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    expect(table.demand(slot, 0)).toBe(0.5);
    table.enter(keyOf('a'), 0);
    expect(table.demand(slot, 0)).toBe(1);
    expect(table.demand(slot, 2000)).toBeCloseTo(1 / Math.E, 12);
    expect(table.demand(slot, 1e9)).toBe(0);
  });

  test('comes to the rate of steady arrivals', () => {
    const { table } = new Trial();
    for (let i = 0; i < 2000; i += 1) table.enter(keyOf('a'), 10 * i);
    // 100 a second, seen right after an arrival: half of one more.
    expect(table.demand(0, 19_990)).toBeCloseTo(100.25, 2);
  });

  test('each client has its own, and its time of arrival before', () => {
    const { table } = new Trial();
    const a = table.enter(keyOf('a'), 100);
    const b = table.enter(keyOf('b'), 200);
    expect(table.previousArrival(a)).toBe(Number.NEGATIVE_INFINITY);
    expect(table.enter(keyOf('a'), 300)).toBe(a);
    expect(table.previousArrival(a)).toBe(100);
    expect(table.previousArrival(b)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('the allowance', () => {
  test('is whole until a flood is refused: up to three times its share is none', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    for (let i = 1; i < 60; i += 1) table.enter(keyOf('a'), 0); // 30 a second
    expect(table.refused(slot, 10, 0)).toBeUndefined();
    expect(table.allowance(slot, 0)).toBe(1);
    expect(table.refused(slot, 9.999, 0)).toBeCloseTo(0.9999, 9);
  });

  test('is cut to thrice its share of what it asks for, and to a sixteenth at the least', () => {
    for (const [share, allowance] of [
      [5, 0.5],
      [2.5, 0.25],
      [0.1, 1 / 16],
      [0, 1 / 16],
    ] as const) {
      const trial = new Trial();
      const slot = trial.flood('a', 60, 0);
      expect(trial.table.refused(slot, share, 0)).toBe(allowance);
      expect(trial.table.allowance(slot, 0)).toBe(allowance);
    }
  });

  test('is never raised by a refusal, and a cut is told only where it fell', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    expect(trial.table.refused(slot, 2.5, 0)).toBe(0.25);
    expect(trial.table.refused(slot, 5, 0)).toBeUndefined();
    expect(trial.table.allowance(slot, 0)).toBe(0.25);
  });

  test('stays for 2 s after the last refusal of a flood, and is restored over 30 s by the cubic', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.refused(slot, 2.5, 0);
    trial.flood('a', 60, 1500);
    trial.table.refused(slot, 25, 1500); // a flood no more: 44 a second of a share of 25
    trial.table.refused(slot, 5, 1500);
    expect(trial.table.allowance(slot, 3500)).toBe(0.25);
    for (const u of [1, 1000, 10_000, 15_000, 29_999]) {
      expect(trial.table.allowance(slot, 3500 + u)).toBe(1 - 0.75 * (1 - u / 30_000) ** 3);
    }
    expect(trial.table.allowance(slot, 3500 + 15_000)).toBe(0.90625);
    expect(trial.table.allowance(slot, 33_500)).toBe(1);
  });

  test('cut again while it is being restored, it starts from there', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.refused(slot, 2.5, 0);
    const restored = trial.table.allowance(slot, 7000);
    trial.flood('a', 60, 7000);
    expect(trial.table.refused(slot, 9, 7000)).toBeUndefined(); // 27 of 30.9 would be more than it has
    expect(trial.table.allowance(slot, 7000)).toBe(restored);
    expect(trial.table.allowance(slot, 9000)).toBe(restored);
    expect(trial.table.allowance(slot, 9001)).toBeGreaterThan(restored);
  });
});

describe('states', () => {
  test('backoff, cooldown with the next that is admitted, restoring, normal; each told once', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.refused(slot, 1, 0);
    trial.table.refused(slot, 1, 100);
    trial.table.admitted(slot, 200);
    trial.table.admitted(slot, 300);
    trial.visit('a', 2099);
    expect(trial.transitions).toEqual(['normal > backoff', 'backoff > cooldown']);
    trial.visit('a', 2100);
    trial.visit('a', 32_099);
    expect(trial.transitions.slice(2)).toEqual(['cooldown > restoring']);
    trial.visit('a', 32_100);
    expect(trial.transitions.slice(3)).toEqual(['restoring > normal']);
    expect(trial.events.find((event) => event.type === 'client-state')).toMatchObject({ upstream: 'up', client: 'a' });
  });

  test('a refusal after an admission is backoff again', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.refused(slot, 1, 0);
    trial.table.admitted(slot, 200);
    trial.table.refused(slot, 1, 300);
    expect(trial.transitions.at(-1)).toBe('cooldown > backoff');
  });

  test('held, until the upstream lets it; the later of two holds counts', () => {
    const trial = new Trial();
    const slot = trial.table.enter(keyOf('a'), 0);
    trial.table.hold(slot, 5000, 0);
    trial.table.hold(slot, 3000, 0);
    expect(trial.table.heldUntil(slot)).toBe(5000);
    trial.visit('a', 4999);
    expect(trial.transitions).toEqual(['normal > held']);
    trial.visit('a', 5000);
    expect(trial.transitions).toEqual(['normal > held', 'held > normal']);
  });

  test('a hold outlasts, and does not undo, a cut', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.refused(slot, 1, 0);
    trial.table.hold(slot, 10_000, 0);
    trial.visit('a', 10_000);
    expect(trial.transitions).toEqual(['normal > backoff', 'backoff > held', 'held > restoring']);
  });

  test('those who never come again are seen to be calm when someone looks', () => {
    const trial = new Trial();
    trial.table.refused(trial.flood('a', 60, 0), 1, 0);
    expect(trial.table.view(40_000).byState).toEqual({ normal: 1, held: 0, backoff: 0, cooldown: 0, restoring: 0 });
    expect(trial.transitions.at(-1)).toBe('backoff > normal');
  });
});

describe('promises', () => {
  test('the last is remembered', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    expect(table.promised(slot)).toBe(Number.NEGATIVE_INFINITY);
    table.promise(slot, 5000);
    table.promise(slot, 4000);
    expect(table.promised(slot)).toBe(4000);
  });
});

describe('the view', () => {
  test('tells how many are in which state, and the least and the mean of the allowances', () => {
    const trial = new Trial();
    expect(trial.table.view(0)).toEqual({
      tracked: 0,
      byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
      allowance: { min: 1, mean: 1 },
    });
    trial.table.refused(trial.flood('a', 60, 0), 2.5, 0);
    trial.table.hold(trial.visit('b', 0), 1000, 0);
    trial.visit('c', 0);
    expect(trial.table.view(0)).toEqual({
      tracked: 3,
      byState: { normal: 1, held: 1, backoff: 1, cooldown: 0, restoring: 0 },
      allowance: { min: 0.25, mean: 0.75 },
    });
  });

  test('leaves out those for whom there was no room', () => {
    const { table } = new Trial(1);
    table.enter(keyOf('a'), 0);
    for (let i = 0; i < 60; i += 1) table.refused(table.enter(keyOf('b'), 0), 1, 0);
    expect(table.view(0)).toMatchObject({ tracked: 1, byState: { normal: 1 }, allowance: { min: 1, mean: 1 } });
  });
});

describe('when there is no room', () => {
  test('the normal client that was seen longest ago is forgotten', () => {
    const trial = new Trial(3);
    for (const [now, name] of ['a', 'b', 'c', 'a'].entries()) trial.visit(name, now);
    trial.visit('d', 10);
    expect(trial.evictions).toEqual(['calm']);
    for (const name of ['a', 'c', 'd']) expect(trial.tracks(name, 11)).toBe(true);
    expect(trial.tracks('b', 12)).toBe(false);
  });

  test('a troubled client is remembered before any normal one', () => {
    const trial = new Trial(3);
    const bad = trial.flood('bad', 60, 0);
    trial.table.refused(bad, 1, 0);
    trial.table.leave(bad);
    for (let now = 1; now <= 50; now += 1) trial.visit(`good ${now}`, now);
    expect(trial.evictions).toEqual(Array.from({ length: 48 }, () => 'calm'));
    expect(trial.table.allowance(trial.table.enter(keyOf('bad'), 51), 51)).toBeCloseTo(0.1, 12);
  });

  test('when all are in trouble, the one nearest to normal goes', () => {
    const trial = new Trial(3);
    for (const [name, until] of [
      ['long', 90_000],
      ['short', 10_000],
      ['middle', 50_000],
    ] as const) {
      trial.table.hold(trial.visit(name, 0), until, 0);
      trial.visit(name, 0);
    }
    trial.visit('new', 1);
    expect(trial.evictions).toEqual(['troubled']);
    expect(trial.tracks('long', 2)).toBe(true);
    expect(trial.tracks('middle', 2)).toBe(true);
    expect(trial.tracks('new', 2)).toBe(true);
    expect(trial.table.view(2).byState).toMatchObject({ normal: 1, held: 2 });
  });

  test('one whose trouble is over in the meantime counts as normal, though nobody looked', () => {
    const trial = new Trial(2);
    for (const [name, until] of [
      ['held', 90_000],
      ['over', 5000],
    ] as const) {
      trial.table.hold(trial.visit(name, 0), until, 0);
      trial.visit(name, 0);
    }
    trial.visit('new', 6000);
    expect(trial.evictions).toEqual(['calm']);
    expect(trial.tracks('held', 6001)).toBe(true);
  });

  test('one in use is never forgotten; newcomers share one slot, with all its trouble, and are not counted', () => {
    const trial = new Trial(2);
    const a = trial.table.enter(keyOf('a'), 0);
    const b = trial.table.enter(keyOf('b'), 0);
    const shared = trial.table.enter(keyOf('c'), 0);
    expect(trial.table.enter(keyOf('d'), 0)).toBe(shared);
    expect(new Set([a, b, shared]).size).toBe(3);
    expect(trial.table.demand(shared, 0)).toBe(1);
    trial.table.hold(shared, 1000, 0);
    expect(trial.table.heldUntil(trial.table.enter(keyOf('e'), 1))).toBe(1000);
    expect(trial.table.view(1)).toMatchObject({ tracked: 2, byState: { normal: 2, held: 0 } });
    expect(trial.events).toEqual([]);

    // Room comes with the first that leaves; the shared slot stays what it is.
    trial.table.leave(a);
    expect(trial.table.enter(keyOf('c'), 2)).toBe(a);
    expect(trial.evictions).toEqual(['calm']);
    for (let i = 0; i < 3; i += 1) trial.table.leave(shared);
    expect(trial.table.enter(keyOf('f'), 3)).toBe(shared);
  });

  test('nothing of who was forgotten is left to who comes after', () => {
    const trial = new Trial(1);
    const old = trial.flood('old', 60, 0);
    trial.table.refused(old, 1, 0);
    trial.table.hold(old, 1e6, 0);
    trial.table.promise(old, 1e6);
    trial.table.leave(old);
    const slot = trial.table.enter(keyOf('new'), 1);
    expect(slot).toBe(old);
    expect(trial.table.demand(slot, 1)).toBe(0.5);
    expect(trial.table.allowance(slot, 1)).toBe(1);
    expect(trial.table.heldUntil(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.promised(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.previousArrival(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.view(1)).toMatchObject({ tracked: 1, byState: { normal: 1, held: 0 } });
  });

  test('a hundred thousand distinct clients take the room of a thousand', () => {
    const trial = new Trial(1000);
    const slots = new Set<ClientSlot>();
    for (let i = 0; i < 100_000; i += 1) {
      const slot = trial.table.enter(keyOf(String(i)), i);
      slots.add(slot);
      if (i % 7 === 0) trial.table.hold(slot, i + 500, i);
      trial.table.leave(slot);
    }
    expect(slots.size).toBe(1000);
    expect(trial.table.view(100_000).tracked).toBe(1000);
    expect(trial.evictions).toHaveLength(99_000);
  });
});

describe('clients that others were told of', () => {
  test('are held before they come, and when they do', () => {
    const table = new ClientTable(3, () => undefined);
    table.heed({ client: 'up\0a', until: 1000 }, 0);
    expect(table.view(0).byState.held).toBe(1);
    const slot = table.enter('up\0a', 10);
    expect(table.heldUntil(slot)).toBe(1000);
    table.heed({ client: 'up\0a', until: 500 }, 20); // not for less
    expect(table.heldUntil(slot)).toBe(1000);
    table.leave(slot);
    expect(table.view(2000).byState.held).toBe(0);
  });

  test('can be forgotten like any other, and do not make the table larger than it may be', () => {
    const table = new ClientTable(2, () => undefined);
    for (const name of ['a', 'b', 'c', 'd']) table.heed({ client: `up\0${name}`, until: 1000 }, 0);
    expect(table.view(0).tracked).toBe(2);
  });

  test('are allowed less here too, and no more than they were', () => {
    const told: Hold[] = [];
    const here = new ClientTable(
      3,
      () => undefined,
      (hold) => told.push(hold),
    );
    const there = new ClientTable(3, () => undefined);
    const slot = here.enter('up\0a', 0);
    for (let i = 0; i < 100; i += 1) here.enter('up\0a', 0);
    expect(here.refused(slot, 1, 0)).toBeLessThan(0.1);
    expect(here.refused(slot, 1, 0)).toBeUndefined();
    expect(told).toEqual([{ client: 'up\0a', until: Number.NEGATIVE_INFINITY, allowance: here.allowance(slot, 0) }]);
    for (const hold of told) there.heed(hold, 0);
    const known = there.enter('up\0a', 0);
    expect(there.allowance(known, 0)).toBe(here.allowance(slot, 0));
    expect(there.heldUntil(known)).toBe(Number.NEGATIVE_INFINITY);
    there.heed({ client: 'up\0a', until: Number.NEGATIVE_INFINITY, allowance: 0.5 }, 0);
    expect(there.allowance(known, 0)).toBe(here.allowance(slot, 0));
    expect(there.allowance(known, 40_000)).toBe(1);
  });

  test('only what was learned here is told on', () => {
    const told: Hold[] = [];
    const table = new ClientTable(
      3,
      () => undefined,
      (hold) => told.push(hold),
    );
    const slot = table.enter('up\0a', 0);
    table.hold(slot, 100, 0);
    table.hold(slot, 50, 0);
    table.heed({ client: 'up\0b', until: 100 }, 0);
    expect(told).toEqual([{ client: 'up\0a', until: 100 }]);
  });
});
