/** A limit in the pool, by what it answers to calls. */
import { expect, test } from 'vitest';
import { HappeningLog } from '../../src/sharing/protocol/usage-log.ts';
import { MemoryPool } from '../../src/sharing/replicas/memory-backend.ts';
import type { Answer } from '../../src/sharing/replicas/replica-protocol.ts';

const SETTINGS = { initialRate: 100, maxRate: 1000, minRate: 0.1, cooldown: 1000 };
const REF = { upstream: 'up', nested: '', scope: 'upstream', key: '' } as const;

/** One replica that sends as many as it may and tells of it ten times a second. Of the first call, one is rejected where that is said. */
function startReplica(pool: MemoryPool): (from: number, until: number, isRejected?: boolean) => Answer {
  let serial = 0;
  let slots: readonly number[] = [];
  let epoch = 0;
  return (from, until, isRejected = false) => {
    for (let now = from; ; now += 100) {
      const log = new HappeningLog();
      for (const slot of slots) {
        serial += 1;
        log.givenBack();
        log.sent(serial, slot);
        if (isRejected && now === from && slot === slots.at(-1)) {
          log.rejected({ sentAt: slot, among: serial, retryAfter: undefined, activeClients: 1 }, now);
        } else log.accepted(slot, serial, now);
        log.ended(now);
      }
      const known = { epoch, since: 0, rate: 100, ceiling: 100 };
      const counts = { lent: 0, inFlight: 0, want: 30, weight: 1, roundTrip: 1 };
      const call = { holder: 'a', now, happenings: log.take(), ...counts, known, chance: 0.5, clients: [] };
      const answer = pool.call(REF, SETTINGS, call, now);
      slots = answer.slots;
      epoch = answer.terms.epoch;
      if (now + 100 > until) return answer;
    }
  };
}

// Seen: after two seconds of a Redis that nobody reached, it lent 144 a second of a limit of 100.
test('what is known of a limit does not grow while nobody asks: it is not known what was sent then', () => {
  const send = startReplica(new MemoryPool());
  send(0, 5000);
  const restoring = send(5100, 7000, true).terms;
  expect(restoring.phase).toBe('restoring');
  const after = send(9000, 9000).terms;
  expect(after.rate).toBe(restoring.rate);
  expect(send(9100, 10_000).terms.rate).toBeGreaterThan(after.rate);
});

test('who is not heard of for three seconds has nothing in flight any more, and is not counted', () => {
  const pool = new MemoryPool();
  const send = (holder: string, sends: number, now: number): Answer => {
    const log = new HappeningLog();
    for (let serial = 1; serial <= sends; serial += 1) log.sent(serial, now);
    const known = { epoch: 0, since: 0, rate: 100, ceiling: 100 };
    const counts = { lent: 0, inFlight: sends, want: 0, weight: 0, roundTrip: 1 };
    const call = { holder, now, happenings: log.take(), ...counts, known, chance: 0.5, clients: [] };
    return pool.call(REF, SETTINGS, call, now);
  };
  send('a', 5, 0);
  expect(send('b', 0, 2900).terms).toMatchObject({ inFlight: 5, holders: 2 });
  expect(send('b', 0, 3100).terms).toMatchObject({ inFlight: 0, holders: 1 });
});
