import { describe, expect, test } from 'vitest';
import { FaultLog } from '../../checker/fault-record.ts';
import type { AskRecord, IntentRecord } from '../../checker/intent-record.ts';
import { judgeIntent as judge } from '../../checker/intent-record.ts';
import { parseOptions } from '../../checker/options.ts';
import { ClientKnowledge } from '../../support/oracle/client-knowledge.ts';
import type { Intent } from '../../support/oracle/intent.ts';

const INTENT: Intent = {
  ...{ name: 'a-1', tenant: 'a', key: 'key-1', method: 'POST', path: '/charges', body: Buffer.alloc(0) },
  ...{ tokens: ['token'], account: [], keyed: [], isPatient: true, isHopeless: false, history: [] },
};

function recordOf(more: Partial<IntentRecord>): IntentRecord {
  const facts = { times: () => 1, logged: () => undefined, ttl: 3000, isRemembered: true };
  return {
    intent: INTENT,
    knowledge: new ClientKnowledge(INTENT, facts),
    asks: [askOf({})],
    chargedAt: [10_500],
    lastWord: ['unknown'],
    endedAt: 11_000,
    ...more,
  };
}

function askOf(more: Partial<AskRecord>): AskRecord {
  return { number: 1, place: 0, starts: { from: 1, to: 1 }, from: 10_000, to: 11_000, hasLeft: false, ...more };
}

const judgeIntent = (record: IntentRecord, faults: FaultLog, loggedAt?: number) =>
  judge(record, faults, () => loggedAt);

describe('the judgement of an intent', () => {
  test('is wrong if the intent was charged twice, or was charged and last reported as plainly refused', () => {
    const faults = new FaultLog();
    expect(judgeIntent(recordOf({}), faults)).toEqual({ kind: 'right' });
    expect(judgeIntent(recordOf({ chargedAt: [10_500, 15_000] }), faults)).toEqual({
      ...{ kind: 'wrong', cause: 'fault', isDouble: true, why: 'charged 2 times' },
    });
    expect(judgeIntent(recordOf({ lastWord: ['not done'] }), faults)).toMatchObject({
      cause: 'fault',
      isDouble: false,
    });
    expect(judgeIntent(recordOf({ lastWord: ['not done', 'unknown'] }), faults)).toEqual({ kind: 'right' });
    expect(judgeIntent(recordOf({ lastWord: ['not done'], chargedAt: [] }), faults)).toEqual({ kind: 'right' });
  });

  test('allows a charge after a plain refusal, if the request of a client that had left was still sent then', () => {
    const faults = new FaultLog();
    const left = askOf({ from: 9000, to: 9100, hasLeft: true });
    const last = askOf({ number: 2 });
    const refused = { asks: [left, last], lastWord: ['not done'] as const };
    expect(judgeIntent(recordOf({ ...refused, chargedAt: [11_500] }), faults, 12_000)).toEqual({ kind: 'right' });
    expect(judgeIntent(recordOf({ ...refused, chargedAt: [11_500] }), faults, 10_500)).toMatchObject({ kind: 'wrong' });
    expect(judgeIntent(recordOf({ ...refused, chargedAt: [11_500] }), faults)).toMatchObject({ kind: 'wrong' });
    expect(judgeIntent(recordOf({ ...refused, chargedAt: [10_900] }), faults, 12_000)).toMatchObject({ kind: 'wrong' });
  });

  test('explains a second charge by a loss of the store only if a request was in progress in the lost part', () => {
    const faults = new FaultLog();
    const twice = recordOf({ chargedAt: [10_500, 15_000] });
    faults.lostParts.push({ from: 13_000, to: 14_000 });
    expect(judgeIntent(twice, faults)).toMatchObject({ cause: 'fault' });
    faults.lostParts.push({ from: 10_800, to: 12_000 });
    expect(judgeIntent(twice, faults)).toMatchObject({ cause: 'lost' });
  });

  test('explains one charge at most by each loss of the store', () => {
    const faults = new FaultLog();
    faults.lostParts.push({ from: 10_800, to: 12_000 });
    const charged = (...chargedAt: number[]) =>
      recordOf({ chargedAt, asks: [askOf({}), askOf({ from: 20_000, to: 21_000 })] });
    expect(judgeIntent(charged(10_500, 15_000), faults)).toMatchObject({ cause: 'lost' });
    expect(judgeIntent(charged(10_500, 15_000, 20_500), faults)).toEqual({
      ...{ kind: 'wrong', cause: 'fault', isDouble: true },
      why: 'charged 3 times, of which 2 can be explained',
    });
    faults.lostParts.push({ from: 20_200, to: 20_400 });
    expect(judgeIntent(charged(10_500, 15_000, 20_500), faults)).toMatchObject({ cause: 'lost' });
  });

  describe('with `onStoreLost: local`', () => {
    const whileLost = (...places: number[]): FaultLog => {
      const faults = new FaultLog();
      for (const place of places) faults.localParts.push({ place, from: 10_100, to: 10_400 });
      return faults;
    };
    const judgeLocal = (record: IntentRecord, faults: FaultLog, loggedAt?: number) =>
      judge(record, faults, () => loggedAt, true);
    const twice = { chargedAt: [10_500, 15_000] };
    const [here, there, elsewhere] = [askOf({}), askOf({ number: 2, place: 1 }), askOf({ number: 3, place: 2 })];

    test('blames each process that decided without the store for one charge, if another process had a request', () => {
      expect(judgeLocal(recordOf({}), whileLost(0))).toEqual({ kind: 'right' });
      for (const asks of [[here], [here, askOf({ number: 2 })]]) {
        expect(judgeLocal(recordOf({ ...twice, asks }), whileLost(0))).toMatchObject({ cause: 'fault' });
      }
      expect(judgeLocal(recordOf({ ...twice, asks: [here, there] }), whileLost(0))).toMatchObject({ cause: 'local' });
      const restarted = recordOf({ ...twice, asks: [askOf({ starts: { from: 1, to: 2 } })] });
      expect(judgeLocal(restarted, whileLost(0))).toMatchObject({ cause: 'local' });
      const thrice = recordOf({ chargedAt: [10_500, 15_000, 19_000], asks: [here, there, elsewhere] });
      expect(judgeLocal(thrice, whileLost(0))).toMatchObject({ cause: 'fault' });
      expect(judgeLocal(thrice, whileLost(0, 1))).toMatchObject({ cause: 'local' });
      const four = recordOf({ chargedAt: [10_500, 15_000, 19_000, 23_000], asks: [here, there, elsewhere] });
      expect(judgeLocal(four, whileLost(0, 1, 2))).toMatchObject({ cause: 'fault' });
    });

    test('excuses nothing while the store responded to all requests', () => {
      const record = recordOf({ ...twice, asks: [here, there] });
      expect(judgeLocal(record, whileLost())).toMatchObject({ cause: 'fault' });
      expect(judgeLocal(record, whileLost(2))).toMatchObject({ cause: 'fault' });
      const later = recordOf({ ...twice, asks: [askOf({ from: 12_000, to: 13_000 }), there] });
      expect(judgeLocal(later, whileLost(0))).toMatchObject({ cause: 'fault' });
    });

    test('excuses a request whose client left before, unless it was over then', () => {
      const left = askOf({ from: 8000, to: 8100, hasLeft: true });
      const record = recordOf({ ...twice, asks: [left, there] });
      expect(judgeLocal(record, whileLost(0), 10_500)).toMatchObject({ cause: 'local' });
      expect(judgeLocal(record, whileLost(0), 8200)).toMatchObject({ cause: 'fault' });
    });

    test('excuses a report only if another process may have done what this one does not know', () => {
      const refused = { lastWord: ['not done'] as const };
      expect(judgeLocal(recordOf(refused), whileLost(0))).toMatchObject({ cause: 'fault', isDouble: false });
      const both = { asks: [here, there] };
      expect(judgeLocal(recordOf({ ...refused, ...both }), whileLost(0))).toMatchObject({ cause: 'local' });
      const reported = (...wrong: string[]): IntentRecord => {
        const record = recordOf(both);
        record.knowledge.wrong.push(...wrong);
        return record;
      };
      const NOT_DONE = 'reported as not done, but it is';
      expect(judgeLocal(reported(NOT_DONE), whileLost(0))).toMatchObject({ cause: 'local' });
      for (const invented of [
        'reported as done, but it is not',
        'answered with a-2',
        'reported as answered, but it has no response',
      ]) {
        expect(judgeLocal(reported(NOT_DONE, invented), whileLost(0))).toMatchObject({ cause: 'fault', why: invented });
      }
    });
  });

  test('explains by a stop one write that arrives directly after it, and no other', () => {
    const faults = new FaultLog();
    faults.stops.push({ from: 11_000, to: 15_000, late: 0 });
    expect(judgeIntent(recordOf({ chargedAt: [10_500, 14_900] }), faults)).toMatchObject({ cause: 'fault' });
    expect(judgeIntent(recordOf({ chargedAt: [10_500, 15_100] }), faults)).toMatchObject({ cause: 'late' });
    expect(judgeIntent(recordOf({ chargedAt: [10_500, 15_200] }), faults)).toMatchObject({ cause: 'fault' });
  });
});

test('the options name topologies, and an unknown topology or an invalid number is rejected', () => {
  expect(parseOptions(['--topology', 'process-sqlite,replicas-redis', '--seed', '7'])).toMatchObject({
    ...{ topologies: ['process-sqlite', 'replicas-redis'], seed: 7, intents: 2000, isSmoke: false },
  });
  expect(() => parseOptions(['--topology', 'replica'])).toThrow(/expected process-sqlite, /);
  expect(() => parseOptions(['--intents', '0'])).toThrow('--intents 0: expected a positive number');
});
