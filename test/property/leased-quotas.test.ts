/** Processes that lease parts of one quota, in virtual time, with slow and lost messages, ends of periods, kills and clean stops. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { HOUR, quotaSettings, UTC_HOUR } from '../support/core/quota-builders.ts';
import { type LeasingProcess, LeasingWorld, trySend } from '../support/quotas/leasing-world.ts';

const ROLLING = 60_000;

const setting = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  isRolling: fc.boolean(),
  limit: fc.integer({ min: 1, max: 400 }),
  hasReserve: fc.boolean(),
  pace: fc.constantFrom('even', 'asNeeded'),
  processes: fc.integer({ min: 1, max: 8 }),
  latency: fc.constantFrom(0, 5, 200),
  gap: fc.constantFrom(1, 20, 500),
} as const);

test('no period has more requests than its quota, whatever happens to the processes and their messages', () => {
  fc.assert(
    fc.property(setting, ({ seed, isRolling, limit, hasReserve, pace, processes: count, latency, gap }) => {
      const random = seededRandom(seed);
      const reserve = hasReserve ? Math.floor(limit / 3) : 0;
      const period = isRolling ? ({ kind: 'rolling', length: ROLLING } as const) : UTC_HOUR;
      const world = new LeasingWorld(quotaSettings({ limit, reserve, pace, period }));
      world.latency = () => Math.floor(latency * random());
      world.now = HOUR - 600 * gap; // an hour ends in the middle
      let processes: LeasingProcess[] = Array.from({ length: count }, () => world.start());
      const sent: number[] = [];
      for (let i = 0; i < 1200; i += 1) {
        const process = processes[Math.floor(random() * processes.length)];
        const chance = random();
        if (process === undefined) break;
        if (chance < 0.005) {
          process.kill();
          processes = [...processes.filter((each) => each !== process), world.start()];
        } else if (chance < 0.01) {
          process.quota.close();
          processes = [...processes.filter((each) => each !== process), world.start()];
        } else if (chance < 0.02) world.keeper = world.keeper === undefined ? world.kept : undefined;
        else if (trySend(process, world.instant, random() < 0.2)) {
          if (random() < 0.1) process.quota.giveBack(world.instant);
          else sent.push(world.now);
        }
        world.runFor(Math.floor(gap * 2 * random()));
      }
      if (!isRolling) {
        for (const hour of [0, 1]) {
          expect(sent.filter((at) => Math.floor(at / HOUR) === hour).length).toBeLessThanOrEqual(limit);
        }
      } else {
        for (const end of sent) {
          expect(sent.filter((at) => at <= end && at > end - ROLLING).length).toBeLessThanOrEqual(limit);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test('processes use up all of a quota, without a reserve, an even pace or faults', () => {
  fc.assert(
    fc.property(setting, ({ seed, limit, processes: count, gap }) => {
      const random = seededRandom(seed);
      const world = new LeasingWorld(quotaSettings({ limit }));
      const processes = Array.from({ length: count }, () => world.start());
      let sent = 0;
      for (let i = 0; i < 5 * limit + 100 * count; i += 1) {
        const process = processes[Math.floor(random() * processes.length)];
        if (process !== undefined && trySend(process, world.instant)) sent += 1;
        world.runFor(2 + Math.floor(gap * random()));
      }
      // Idle processes have returned what they do not use.
      for (let i = 0; i < 10 * count; i += 1) {
        world.runFor(1500);
        for (const process of processes) if (trySend(process, world.instant)) sent += 1;
        world.runFor(5);
        for (const process of processes) if (trySend(process, world.instant)) sent += 1;
      }
      expect(sent).toBe(limit);
    }),
    { numRuns: 100 },
  );
});
