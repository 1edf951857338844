/** A limit in a backend, tested by its responses to calls. */
import { expect, test } from 'vitest';
import { UsageLog } from '../../../src/sharing/protocol/usage-log.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import type { LeaseResponse } from '../../../src/sharing/replicas/replica-protocol.ts';

const SETTINGS = { initialRate: 100, maxRate: 1000, minRate: 0.1, cooldown: 1000 };
const REF = { upstream: 'up', nested: '', scope: 'upstream', key: '' } as const;

/**
 * One replica that sends at the full rate and reports ten times a second. Optionally one request of the first call is
 * rejected.
 */
function startReplica(pool: MemoryBackend): (from: number, until: number, isRejected?: boolean) => LeaseResponse {
  let serial = 0;
  let slots: readonly number[] = [];
  let epoch = 0;
  return (from, until, isRejected = false) => {
    for (let now = from; ; now += 100) {
      const log = new UsageLog();
      for (const slot of slots) {
        serial += 1;
        log.tokenReturned();
        log.sent(serial, slot);
        if (isRejected && now === from && slot === slots.at(-1)) {
          log.rejected({ sentAt: slot, inFlightAtSend: serial, retryAfterMs: undefined, activeClients: 1 }, now);
        } else log.accepted(slot, serial, now);
        log.ended(now);
      }
      const known = { epoch, since: 0, rate: 100, ceiling: 100 };
      const counts = { leasedTokens: 0, inFlight: 0, unanswered: 0, want: 30, weight: 1, roundTrip: 1 };
      const call = {
        replicaId: 'a',
        now,
        usage: log.take(),
        ...counts,
        known,
        random: 0.5,
        waitingGroups: [],
        returningGroups: [],
      };
      const answer = pool.serve(REF, SETTINGS, call, now);
      slots = answer.slots;
      epoch = answer.terms.epoch;
      if (now + 100 > until) return answer;
    }
  };
}

// Regression: after two seconds without Redis, it leased 144 tokens a second of a limit of 100.
test('a limit does not grow without reports, because the sends of that time are unknown', () => {
  const send = startReplica(new MemoryBackend());
  send(0, 5000);
  const restoring = send(5100, 7000, true).terms;
  expect(restoring.phase).toBe('restoring');
  const after = send(9000, 9000).terms;
  expect(after.rate).toBe(restoring.rate);
  expect(send(9100, 10_000).terms.rate).toBeGreaterThan(after.rate);
});

test('a replica without reports for three seconds has nothing in flight, and is not counted', () => {
  const pool = new MemoryBackend();
  const send = (replicaId: string, sends: number, now: number): LeaseResponse => {
    const log = new UsageLog();
    for (let serial = 1; serial <= sends; serial += 1) log.sent(serial, now);
    const known = { epoch: 0, since: 0, rate: 100, ceiling: 100 };
    const counts = { leasedTokens: 0, inFlight: sends, unanswered: sends, want: 0, weight: 0, roundTrip: 1 };
    const call = {
      replicaId,
      now,
      usage: log.take(),
      ...counts,
      known,
      random: 0.5,
      waitingGroups: [],
      returningGroups: [],
    };
    return pool.serve(REF, SETTINGS, call, now);
  };
  send('a', 5, 0);
  expect(send('b', 0, 2900).terms).toMatchObject({ inFlight: 5, replicas: 2 });
  expect(send('b', 0, 3100).terms).toMatchObject({ inFlight: 0, replicas: 1 });
});
