import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MemoryJournal, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';
import { type LeasingProcess, LeasingWorld, trySend } from '../../support/quotas/leasing-world.ts';

/** Sends one request after another, each as soon as its part has come. Returns how many were sent. */
function sendMany(world: LeasingWorld, process: LeasingProcess, count: number, hasPriority = false): number {
  let sent = 0;
  for (let tries = 0; tries < 3 * count && sent < count; tries += 1) {
    if (trySend(process, world.instant, hasPriority)) sent += 1;
    else world.runFor(2);
  }
  return sent;
}

const remaining = (world: LeasingWorld): number | undefined => world.kept.views(world.now)[0]?.remaining;

describe('a leased quota', () => {
  test('requests a part, and does not claim meanwhile that it is used up', () => {
    const world = new LeasingWorld(quotaSettings());
    const process = world.start();
    expect(process.quota.delay(false, world.instant)).toBe(Infinity);
    expect(process.quota.isAwaited).toBe(true);
    expect(process.quota.expectedDelay(false, world.instant)).toBe(0);
    expect(process.quota.untilReset(false, world.instant)).toBe(0);
    world.runFor(2);
    expect(process.quota.delay(false, world.instant)).toBe(0);
    expect(process.calls).toMatchObject([{ want: 1, returns: [], held: 0, overdrawn: 0 }]);
  });

  test('is never exceeded by several processes, and used up by them', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const processes = [1, 2, 3].map(() => world.start());
    let sent = 0;
    for (let i = 0; i < 1200; i += 1) {
      for (const process of processes) if (trySend(process, world.instant)) sent += 1;
      world.runFor(1);
    }
    world.runFor(3000);
    for (const process of processes) sent += sendMany(world, process, 1000);
    expect(sent).toBe(1000);
  });

  test('leases several ahead while requests are frequent, fewer as it runs out, and one at a time at last', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    world.start();
    sendMany(world, process, 990);
    const wanted = process.calls.map(({ want }) => want);
    expect(Math.max(...wanted)).toBeGreaterThan(50);
    const held = process.calls.map(({ held }) => held);
    expect(Math.max(...held.slice(-5))).toBeLessThanOrEqual(1);
  });

  test('leases nothing ahead for rare requests', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    for (let i = 0; i < 20; i += 1) {
      sendMany(world, process, 1);
      world.runFor(10_000);
    }
    expect(process.calls.slice(-8).every(({ want }) => want <= 1)).toBe(true);
    expect(remaining(world)).toBe(980);
  });

  test('returns what is unused after a second, for other processes', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    sendMany(world, process, 200);
    expect(remaining(world)).toBeLessThan(800);
    world.runFor(3000);
    expect(remaining(world)).toBe(800);
  });

  test('returns what is unused at its end', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    sendMany(world, process, 200);
    process.quota.close();
    world.runFor(10);
    expect(remaining(world)).toBe(800);
  });

  test('reports at its end that it holds nothing, so that others do not expect returns of it', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1 }));
    const [first, second] = [world.start(), world.start()];
    expect(sendMany(world, first, 1)).toBe(1);
    first.quota.close();
    world.runFor(10);
    expect(sendMany(world, second, 1)).toBe(0);
    expect(second.quota.returnDelay(false, world.instant)).toBeGreaterThan(HOUR);
    const calls = first.calls.length;
    world.runFor(5000);
    expect(first.calls).toHaveLength(calls);
  });

  test('is used up for all until the reset, with its time', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 10 }));
    const [first, second] = [world.start(), world.start()];
    sendMany(world, first, 10);
    expect(sendMany(world, second, 1)).toBe(0);
    expect(second.quota.untilReset(false, world.instant)).toBeGreaterThan(DAY - 1000);
    expect(second.quota.returnDelay(false, world.instant)).toBeLessThanOrEqual(1000); // the first may return some
    world.runFor(5000);
    expect(sendMany(world, second, 1)).toBe(0);
    expect(second.quota.returnDelay(false, world.instant)).toBeGreaterThan(DAY - 10_000);
    world.runFor(DAY);
    expect(sendMany(world, second, 10)).toBe(10);
  });

  test('leaves the reserve to requests with priority, in whichever process they are', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 20, reserve: 5 }));
    const [first, second] = [world.start(), world.start()];
    expect(sendMany(world, first, 20)).toBe(15);
    expect(sendMany(world, second, 20)).toBe(0);
    expect(second.quota.untilReset(true, world.instant)).toBe(0);
    expect(sendMany(world, second, 3, true)).toBe(3);
    expect(sendMany(world, first, 3, true)).toBe(2);
    expect(sendMany(world, first, 1)).toBe(0);
  });

  test('divides an even pace among the processes that use it', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 36_000, pace: 'even', period: UTC_HOUR })); // 10/s
    const processes = [world.start(), world.start()];
    const sent: number[] = [];
    for (let time = 0; time < 20_000; time += 1) {
      for (const process of processes) if (trySend(process, world.instant)) sent.push(world.now);
      world.runFor(1);
    }
    expect(sent.length).toBeGreaterThan(180);
    expect(sent.length).toBeLessThanOrEqual(201);
    const gaps = sent.slice(1).map((at, i) => at - (sent[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(97);
    expect(processes.map(({ quota }) => Math.round(quota.rate(false)))).toEqual([5, 5]);
  });

  test('carries what is admitted before the reset and sent after it to the new period', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const process = world.start();
    world.runFor(HOUR - 10);
    expect(process.quota.delay(false, world.instant)).toBe(Infinity);
    world.runFor(2);
    process.quota.reserve(false, world.now, world.instant);
    world.runFor(20); // into the next hour
    expect(sendMany(world, process, 5)).toBe(2);
    process.quota.release();
    process.quota.onSent(world.instant);
    world.runFor(10);
    expect(remaining(world)).toBe(0);
    expect(sendMany(world, process, 1)).toBe(0);
  });

  test('counts for the new period what is sent between the reset and the first response of the new period', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const process = world.start();
    world.runFor(HOUR - 10);
    expect(process.quota.delay(false, world.instant)).toBe(Infinity);
    world.runFor(2);
    process.quota.reserve(false, world.now, world.instant);
    world.runFor(20); // into the next hour
    process.quota.release();
    process.quota.onSent(world.instant);
    expect(sendMany(world, process, 5)).toBe(2);
    world.runFor(10);
    expect(remaining(world)).toBe(0);
  });

  test('grants other processes after the reset only what those do not need that are admitted and not sent yet', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const [first, second] = [world.start(), world.start()];
    world.runFor(HOUR - 2000);
    for (let i = 0; i < 2; i += 1) {
      expect(first.quota.delay(false, world.instant)).toBe(Infinity);
      world.runFor(2);
      first.quota.reserve(false, world.now, world.instant);
    }
    world.runFor(2000); // into the next hour: the first process calls at the end of its second
    expect(sendMany(world, second, 3)).toBe(1);
    // Refused clients return soon: the first process may not need its parts.
    expect(second.quota.untilReset(false, world.instant)).toBeGreaterThan(0);
    expect(second.quota.returnDelay(false, world.instant)).toBeLessThanOrEqual(1000);
    world.runFor(1500);
    expect(sendMany(world, second, 3)).toBe(0);
    for (let i = 0; i < 2; i += 1) {
      first.quota.release();
      first.quota.onSent(world.instant);
    }
    world.runFor(3000);
    expect(remaining(world)).toBe(0);
  });

  test('grants them no more while a process has called after the reset, and does not know of the reset yet', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const first = world.start();
    const others = [1, 2, 3].map(() => world.start());
    world.runFor(HOUR - 2000);
    for (let i = 0; i < 2; i += 1) {
      expect(first.quota.delay(false, world.instant)).toBe(Infinity);
      world.runFor(2);
      first.quota.reserve(false, world.now, world.instant);
    }
    world.runFor(HOUR - world.now);
    world.latency = () => 5;
    const calls = first.calls.length;
    while (first.calls.length === calls) world.runFor(1);
    expect(first.calls.at(-1)).toMatchObject({ overdrawn: 0, held: 2 });
    world.runFor(1);
    for (const { quota } of others) expect(quota.delay(false, world.instant)).toBe(Infinity);
    world.runFor(10);
    expect(others.filter((other) => trySend(other, world.instant))).toHaveLength(1);
    world.runFor(20);
    expect(first.calls.at(-1)).toMatchObject({ overdrawn: 2, held: 2 });
    expect(remaining(world)).toBe(0);
  });

  test('grants other processes after the reset what one holds that has not called for five seconds', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const [first, second] = [world.start(), world.start()];
    world.runFor(HOUR - 2000);
    expect(first.quota.delay(false, world.instant)).toBe(Infinity);
    world.runFor(2);
    first.quota.reserve(false, world.now, world.instant);
    first.hang();
    world.runFor(HOUR - world.now);
    expect(sendMany(world, second, 3)).toBe(2);
    world.runFor(3100);
    expect(sendMany(world, second, 1)).toBe(1);
  });

  test('grants other processes after the reset all that one which holds nothing has not leased', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
    const [first, second] = [world.start(), world.start()];
    world.runFor(HOUR - 500);
    expect(sendMany(world, first, 1)).toBe(1);
    world.runFor(HOUR - world.now);
    expect(sendMany(world, first, 1)).toBe(1);
    expect(sendMany(world, second, 3)).toBe(2);
  });

  test.each([1, 4])(
    'gains nothing by a request that is sent %i ms after the first call of the new period, and given back',
    (after) => {
      const world = new LeasingWorld(quotaSettings({ limit: 3, period: UTC_HOUR }));
      const process = world.start();
      world.runFor(HOUR - 10);
      expect(process.quota.delay(false, world.instant)).toBe(Infinity);
      world.runFor(2);
      process.quota.reserve(false, world.now, world.instant);
      world.runFor(20); // into the next hour
      world.latency = () => 5;
      expect(process.quota.delay(false, world.instant)).toBe(Infinity); // calls
      world.runFor(after);
      const sent = world.instant;
      process.quota.release();
      process.quota.onSent(sent);
      world.runFor(20);
      process.quota.giveBack(sent);
      expect(sendMany(world, process, 5)).toBe(3);
      world.runFor(20);
      expect(remaining(world)).toBe(0);
    },
  );

  test.each(['is never sent', 'could not be sent'])(
    'keeps for the reserve a part whose request with priority %s',
    (how) => {
      const world = new LeasingWorld(quotaSettings({ limit: 4, reserve: 2 }));
      const process = world.start();
      expect(sendMany(world, process, 9)).toBe(2);
      expect(process.quota.delay(true, world.instant)).toBe(Infinity);
      world.runFor(2);
      process.quota.reserve(true, world.now, world.instant);
      process.quota.release();
      if (how === 'could not be sent') {
        process.quota.onSent(world.instant);
        process.quota.giveBack(world.instant);
      }
      expect(sendMany(world, process, 1)).toBe(0);
      expect(sendMany(world, process, 9, true)).toBe(2);
    },
  );

  test('gives back a part whose request was not sent', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1 }));
    const process = world.start();
    expect(sendMany(world, process, 1)).toBe(1);
    process.quota.giveBack(world.instant);
    expect(process.quota.delay(false, world.instant)).toBe(0);
    expect(sendMany(world, process, 1)).toBe(1);
  });

  test('returns a part whose request, sent long ago, has failed to connect', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 10 }));
    const process = world.start();
    expect(sendMany(world, process, 1)).toBe(1);
    const sent = world.instant;
    world.runFor(5000);
    expect(remaining(world)).toBe(9);
    process.quota.giveBack(sent);
    world.runFor(3000);
    expect(remaining(world)).toBe(10);
  });

  test.each(['waits', 'has been sent'])('returns a part after its end, of a request that then %s and fails', (how) => {
    const world = new LeasingWorld(quotaSettings({ limit: 10 }));
    const process = world.start();
    expect(process.quota.delay(false, world.instant)).toBe(Infinity);
    world.runFor(2);
    process.quota.reserve(false, world.now, world.instant);
    process.quota.close();
    world.runFor(5000);
    process.quota.release();
    if (how === 'has been sent') {
      const sent = world.instant;
      process.quota.onSent(sent);
      world.runFor(5000);
      expect(remaining(world)).toBe(9);
      process.quota.giveBack(sent);
    }
    world.runFor(3000);
    expect(remaining(world)).toBe(10);
    const calls = process.calls.length;
    world.runFor(5000);
    expect(process.calls).toHaveLength(calls);
  });

  test('counts what was sent without a part, as in observe mode', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 5 }));
    const process = world.start();
    for (let i = 0; i < 7; i += 1) process.quota.onSent(world.instant);
    world.runFor(2000);
    expect(remaining(world)).toBe(0);
    expect(sendMany(world, process, 1)).toBe(0);
  });

  test('uses only what it has leased while the keeper does not respond, and asks again', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    sendMany(world, process, 100);
    world.runFor(3);
    world.keeper = undefined;
    const left = sendMany(world, process, 1000);
    expect(left).toBeLessThan(150);
    expect(process.quota.isLost).toBe(true);
    expect(process.quota.untilReset(false, world.instant)).toBeLessThanOrEqual(500);
    expect(process.quota.returnDelay(false, world.instant)).toBeLessThanOrEqual(500);
    world.keeper = world.kept;
    world.runFor(600);
    expect(sendMany(world, process, 10)).toBe(10);
    expect(process.quota.isLost).toBe(false);
  });

  test('counts what a killed process had leased as sent', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }));
    const process = world.start();
    sendMany(world, process, 100);
    process.kill();
    world.runFor(60_000);
    const left = remaining(world) ?? 0;
    expect(left).toBeLessThanOrEqual(900);
    expect(left).toBeGreaterThan(700);
    const other = world.start();
    expect(sendMany(world, other, 1000)).toBe(left);
    world.runFor(3000);
    expect(sendMany(world, other, 1)).toBe(0);
    expect(other.quota.returnDelay(false, world.instant)).toBeGreaterThan(HOUR);
  });

  test('applies another limit at a reload, and keeps the count', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 3 }));
    const process = world.start();
    expect(sendMany(world, process, 5)).toBe(3);
    world.configure(quotaSettings({ limit: 5 }));
    process.quota.reconfigure(quotaSettings({ limit: 5 }));
    expect(sendMany(world, process, 5)).toBe(2);
  });

  test('stores leases before they are used', () => {
    const journal = new MemoryJournal();
    const world = new LeasingWorld(quotaSettings({ limit: 1000 }), journal);
    sendMany(world, world.start(), 50);
    const next = new LeasingWorld(quotaSettings({ limit: 1000 }), journal);
    expect(remaining(next)).toBeLessThanOrEqual(950);
  });

  test('does not use after the reset what it leased before', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 1000, period: UTC_HOUR }));
    const process = world.start();
    world.runFor(HOUR - 200);
    sendMany(world, process, 50);
    world.runFor(HOUR - world.now - 5);
    expect(process.quota.delay(false, world.instant)).toBe(0);
    world.runFor(5);
    expect(process.quota.delay(false, world.instant)).toBe(Infinity);
    expect(sendMany(world, process, 2000)).toBe(1000);
  });

  test('is void at the reset by the clock of the keeper', () => {
    const world = new LeasingWorld(quotaSettings({ limit: 4, period: UTC_HOUR }));
    const process = world.start();
    world.wallOffset = HOUR / 2;
    sendMany(world, process, 4);
    world.runFor(HOUR / 2);
    expect(sendMany(world, process, 6)).toBe(4);
  });
});
