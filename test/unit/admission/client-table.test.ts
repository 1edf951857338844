import type { ClientHold } from '../../../src/core/limits/client-holds.ts';
import { describe, expect, test } from 'vitest';
import type { ClientSlot } from '../../../src/core/admission/client-allowance.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';

class Trial {
  readonly events: ProxyEvent[] = [];
  readonly table: ClientTable;

  constructor(maxTracked = 100) {
    this.table = new ClientTable(maxTracked, (event) => {
      this.events.push(event);
    });
  }

  /** One request from its arrival to its end. */
  visit(name: string, now: Millis): ClientSlot {
    const slot = this.table.enter(keyOf(name), now);
    this.table.leave(slot);
    return slot;
  }

  /** `count` requests at once; the last of them is still open. */
  flood(name: string, count: number, now: Millis): ClientSlot {
    for (let i = 1; i < count; i += 1) this.visit(name, now);
    return this.table.enter(keyOf(name), now);
  }

  /** Reported state changes, from and to. */
  get transitions(): string[] {
    return this.events.flatMap((event) => (event.type === 'client-state' ? [`${event.from} > ${event.to}`] : []));
  }

  get evictions(): string[] {
    return this.events.flatMap((event) => (event.type === 'client-evicted' ? [event.cause] : []));
  }

  tracks(name: string, now: Millis): boolean {
    // A client that has sent requests before.
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
  test('is arrivals a second, decaying with a time constant of 2 s', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    expect(table.demand(slot, 0)).toBe(0.5);
    table.enter(keyOf('a'), 0);
    expect(table.demand(slot, 0)).toBe(1);
    expect(table.demand(slot, 2000)).toBeCloseTo(1 / Math.E, 12);
    expect(table.demand(slot, 1e9)).toBe(0);
  });

  test('converges to the rate of steady arrivals', () => {
    const { table } = new Trial();
    for (let i = 0; i < 2000; i += 1) table.enter(keyOf('a'), 10 * i);
    // 100 a second, read right after an arrival: half of one more.
    expect(table.demand(0, 19_990)).toBeCloseTo(100.25, 2);
  });

  test('is kept for each client, as is the time of its previous arrival', () => {
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
  test('stays whole if a client with up to three times its share is refused', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    for (let i = 1; i < 60; i += 1) table.enter(keyOf('a'), 0); // 30 a second
    expect(table.onRefused(slot, 10, 0)).toBeUndefined();
    expect(table.allowance(slot, 0)).toBe(1);
    expect(table.onRefused(slot, 9.999, 0)).toBeCloseTo(0.9999, 9);
  });

  test('is cut so that the client has three times its share, and to a sixteenth at the least', () => {
    for (const [share, allowance] of [
      [5, 0.5],
      [2.5, 0.25],
      [0.1, 1 / 16],
      [0, 1 / 16],
    ] as const) {
      const trial = new Trial();
      const slot = trial.flood('a', 60, 0);
      expect(trial.table.onRefused(slot, share, 0)).toBe(allowance);
      expect(trial.table.allowance(slot, 0)).toBe(allowance);
    }
  });

  test('is never raised by a refusal, and a cut is reported only if the allowance fell', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    expect(trial.table.onRefused(slot, 2.5, 0)).toBe(0.25);
    expect(trial.table.onRefused(slot, 5, 0)).toBeUndefined();
    expect(trial.table.allowance(slot, 0)).toBe(0.25);
  });

  test('stays for 2 s after the last refusal of a demand above three times the share, and is restored over 30 s by the cubic', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.onRefused(slot, 2.5, 0);
    trial.flood('a', 60, 1500);
    trial.table.onRefused(slot, 25, 1500); // no longer an excess: 44 a second with a share of 25
    trial.table.onRefused(slot, 5, 1500);
    expect(trial.table.allowance(slot, 3500)).toBe(0.25);
    for (const u of [1, 1000, 10_000, 15_000, 29_999]) {
      expect(trial.table.allowance(slot, 3500 + u)).toBe(1 - 0.75 * (1 - u / 30_000) ** 3);
    }
    expect(trial.table.allowance(slot, 3500 + 15_000)).toBe(0.90625);
    expect(trial.table.allowance(slot, 33_500)).toBe(1);
  });

  test('is cut again from its current value while it is being restored', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.onRefused(slot, 2.5, 0);
    const restored = trial.table.allowance(slot, 7000);
    trial.flood('a', 60, 7000);
    expect(trial.table.onRefused(slot, 9, 7000)).toBeUndefined(); // 27 of 30.9 would exceed its allowance
    expect(trial.table.allowance(slot, 7000)).toBe(restored);
    expect(trial.table.allowance(slot, 9000)).toBe(restored);
    expect(trial.table.allowance(slot, 9001)).toBeGreaterThan(restored);
  });
});

describe('states', () => {
  test('are backoff, cooldown at the next admission, restoring and normal; each is reported once', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.onRefused(slot, 1, 0);
    trial.table.onRefused(slot, 1, 100);
    trial.table.onAdmitted(slot, 200);
    trial.table.onAdmitted(slot, 300);
    trial.visit('a', 2099);
    expect(trial.transitions).toEqual(['normal > backoff', 'backoff > cooldown']);
    trial.visit('a', 2100);
    trial.visit('a', 32_099);
    expect(trial.transitions.slice(2)).toEqual(['cooldown > restoring']);
    trial.visit('a', 32_100);
    expect(trial.transitions.slice(3)).toEqual(['restoring > normal']);
    expect(trial.events.find((event) => event.type === 'client-state')).toMatchObject({ upstream: 'up', client: 'a' });
  });

  test('return to backoff at a refusal after an admission', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.onRefused(slot, 1, 0);
    trial.table.onAdmitted(slot, 200);
    trial.table.onRefused(slot, 1, 300);
    expect(trial.transitions.at(-1)).toBe('cooldown > backoff');
  });

  test('are held until the upstream allows the client; the later of two holds counts', () => {
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

  test('a hold outlasts a cut and does not undo it', () => {
    const trial = new Trial();
    const slot = trial.flood('a', 60, 0);
    trial.table.onRefused(slot, 1, 0);
    trial.table.hold(slot, 10_000, 0);
    trial.visit('a', 10_000);
    expect(trial.transitions).toEqual(['normal > backoff', 'backoff > held', 'held > restoring']);
  });

  test('become normal on inspection for clients that never return', () => {
    const trial = new Trial();
    trial.table.onRefused(trial.flood('a', 60, 0), 1, 0);
    expect(trial.table.view(40_000).byState).toEqual({ normal: 1, held: 0, backoff: 0, cooldown: 0, restoring: 0 });
    expect(trial.transitions.at(-1)).toBe('backoff > normal');
  });
});

describe('reserved slots', () => {
  test('keep the last slot, and the first one that was not used', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    expect(table.promisedReturn(slot)).toBe(Number.NEGATIVE_INFINITY);
    table.setPromisedReturn(slot, 5000);
    table.setPromisedReturn(slot, 4000);
    expect(table.promisedReturn(slot)).toBe(4000);
    expect(table.firstPromisedReturn(slot)).toBe(4000);
    table.setPromisedReturn(slot, 9000, 4000);
    expect([table.firstPromisedReturn(slot), table.promisedReturn(slot)]).toEqual([4000, 9000]);
    table.setPromisedReturn(slot, 100_000, 4000); // too far apart: the first is forgotten
    expect([table.firstPromisedReturn(slot), table.promisedReturn(slot)]).toEqual([100_000, 100_000]);
    table.resetClient(slot, 0);
    expect(table.firstPromisedReturn(slot)).toBe(Number.NEGATIVE_INFINITY);
  });

  test('are kept by a limit or not, whether or not the client is still refused', () => {
    const { table } = new Trial();
    const slot = table.enter(keyOf('a'), 0);
    expect(table.isPromiseKeptByLimit(slot)).toBe(false);
    table.setPromisedReturn(slot, 9000, 4000, true);
    expect(table.isPromiseKeptByLimit(slot)).toBe(true);
    for (let i = 0; i < 9; i += 1) table.enter(keyOf('a'), 0);
    expect(table.onRefused(slot, 0.1, 0)).toBeLessThan(1);
    expect([table.isPromiseKeptByLimit(slot), table.stateAt(slot, 0)]).toEqual([true, 'backoff']);
    table.setPromisedReturn(slot, 9000);
    expect([table.isPromiseKeptByLimit(slot), table.stateAt(slot, 0)]).toEqual([false, 'backoff']);
    table.setPromisedReturn(slot, 9000, 9000, true);
    table.onAdmitted(slot, 0);
    expect([table.isPromiseKeptByLimit(slot), table.stateAt(slot, 0)]).toEqual([true, 'cooldown']);
    table.resetClient(slot, 0);
    expect(table.isPromiseKeptByLimit(slot)).toBe(false);
  });
});

describe('the view', () => {
  test('counts the clients in each state, and has the least and the mean allowance', () => {
    const trial = new Trial();
    expect(trial.table.view(0)).toEqual({
      tracked: 0,
      byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
      allowance: { min: 1, mean: 1 },
    });
    trial.table.onRefused(trial.flood('a', 60, 0), 2.5, 0);
    trial.table.hold(trial.visit('b', 0), 1000, 0);
    trial.visit('c', 0);
    expect(trial.table.view(0)).toEqual({
      tracked: 3,
      byState: { normal: 1, held: 1, backoff: 1, cooldown: 0, restoring: 0 },
      allowance: { min: 0.25, mean: 0.75 },
    });
  });

  test('leaves out clients that have no slot in the full table', () => {
    const { table } = new Trial(1);
    table.enter(keyOf('a'), 0);
    for (let i = 0; i < 60; i += 1) table.onRefused(table.enter(keyOf('b'), 0), 1, 0);
    expect(table.view(0)).toMatchObject({ tracked: 1, byState: { normal: 1 }, allowance: { min: 1, mean: 1 } });
  });
});

describe('a full table', () => {
  test('evicts the normal client that was seen longest ago', () => {
    const trial = new Trial(3);
    for (const [now, name] of ['a', 'b', 'c', 'a'].entries()) trial.visit(name, now);
    trial.visit('d', 10);
    expect(trial.evictions).toEqual(['calm']);
    for (const name of ['a', 'c', 'd']) expect(trial.tracks(name, 11)).toBe(true);
    expect(trial.tracks('b', 12)).toBe(false);
  });

  test('evicts every normal client before one in another state', () => {
    const trial = new Trial(3);
    const bad = trial.flood('bad', 60, 0);
    trial.table.onRefused(bad, 1, 0);
    trial.table.leave(bad);
    for (let now = 1; now <= 50; now += 1) trial.visit(`good ${now}`, now);
    expect(trial.evictions).toEqual(Array.from({ length: 48 }, () => 'calm'));
    expect(trial.table.allowance(trial.table.enter(keyOf('bad'), 51), 51)).toBeCloseTo(0.1, 12);
  });

  test('evicts the client that is closest to normal if none is normal', () => {
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

  test('treats a client whose restrictions have ended as normal, though its state was not read since', () => {
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

  test('never evicts a client in use; newcomers share one slot, which is never held and not counted', () => {
    const trial = new Trial(2);
    const a = trial.table.enter(keyOf('a'), 0);
    const b = trial.table.enter(keyOf('b'), 0);
    const shared = trial.table.enter(keyOf('c'), 0);
    expect(trial.table.enter(keyOf('d'), 0)).toBe(shared);
    expect(new Set([a, b, shared]).size).toBe(3);
    expect(trial.table.demand(shared, 0)).toBe(1);
    // A Retry-After is for the client that received it, and the others of the slot did not.
    trial.table.hold(shared, 1000, 0);
    expect(trial.table.heldUntil(trial.table.enter(keyOf('e'), 1))).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.view(1)).toMatchObject({ tracked: 2, byState: { normal: 2, held: 0 } });
    expect(trial.events).toEqual([]);

    // The first departure frees a slot; the shared slot stays as it is.
    trial.table.leave(a);
    expect(trial.table.enter(keyOf('c'), 2)).toBe(a);
    expect(trial.evictions).toEqual(['calm']);
    for (let i = 0; i < 3; i += 1) trial.table.leave(shared);
    expect(trial.table.enter(keyOf('f'), 3)).toBe(shared);
  });

  test('leaves no state of an evicted client to its successor', () => {
    const trial = new Trial(1);
    const old = trial.flood('old', 60, 0);
    trial.table.onRefused(old, 1, 0);
    trial.table.hold(old, 1e6, 0);
    trial.table.setPromisedReturn(old, 1e6);
    trial.table.leave(old);
    const slot = trial.table.enter(keyOf('new'), 1);
    expect(slot).toBe(old);
    expect(trial.table.demand(slot, 1)).toBe(0.5);
    expect(trial.table.allowance(slot, 1)).toBe(1);
    expect(trial.table.heldUntil(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.promisedReturn(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.previousArrival(slot)).toBe(Number.NEGATIVE_INFINITY);
    expect(trial.table.view(1)).toMatchObject({ tracked: 1, byState: { normal: 1, held: 0 } });
  });

  test('keeps a hundred thousand distinct clients in the space of a thousand', () => {
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

describe('clients reported by other processes', () => {
  test('are held before they arrive here, and when they do', () => {
    const table = new ClientTable(3, () => undefined);
    table.applyHold({ client: 'up\0a', until: 1000 }, 0);
    expect(table.view(0).byState.held).toBe(1);
    const slot = table.enter('up\0a', 10);
    expect(table.heldUntil(slot)).toBe(1000);
    table.applyHold({ client: 'up\0a', until: 500 }, 20); // not shortened
    expect(table.heldUntil(slot)).toBe(1000);
    table.leave(slot);
    expect(table.view(2000).byState.held).toBe(0);
  });

  test('are evicted like any other, and do not make the table exceed its size', () => {
    const table = new ClientTable(2, () => undefined);
    for (const name of ['a', 'b', 'c', 'd']) table.applyHold({ client: `up\0${name}`, until: 1000 }, 0);
    expect(table.view(0).tracked).toBe(2);
  });

  test('have their allowance reduced here too, and never raised', () => {
    const holds: ClientHold[] = [];
    const here = new ClientTable(
      3,
      () => undefined,
      (hold) => holds.push(hold),
    );
    const there = new ClientTable(3, () => undefined);
    const slot = here.enter('up\0a', 0);
    for (let i = 0; i < 100; i += 1) here.enter('up\0a', 0);
    expect(here.onRefused(slot, 1, 0)).toBeLessThan(0.1);
    expect(here.onRefused(slot, 1, 0)).toBeUndefined();
    expect(holds).toEqual([{ client: 'up\0a', until: Number.NEGATIVE_INFINITY, allowance: here.allowance(slot, 0) }]);
    for (const hold of holds) there.applyHold(hold, 0);
    const known = there.enter('up\0a', 0);
    expect(there.allowance(known, 0)).toBe(here.allowance(slot, 0));
    expect(there.heldUntil(known)).toBe(Number.NEGATIVE_INFINITY);
    there.applyHold({ client: 'up\0a', until: Number.NEGATIVE_INFINITY, allowance: 0.5 }, 0);
    expect(there.allowance(known, 0)).toBe(here.allowance(slot, 0));
    expect(there.allowance(known, 40_000)).toBe(1);
  });

  test('are not reported to others: only local holds are', () => {
    const holds: ClientHold[] = [];
    const table = new ClientTable(
      3,
      () => undefined,
      (hold) => holds.push(hold),
    );
    const slot = table.enter('up\0a', 0);
    table.hold(slot, 100, 0);
    table.hold(slot, 50, 0);
    table.applyHold({ client: 'up\0b', until: 100 }, 0);
    expect(holds).toEqual([{ client: 'up\0a', until: 100 }]);
  });
});
