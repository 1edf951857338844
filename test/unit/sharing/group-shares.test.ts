import { describe, expect, test } from 'vitest';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import type { DemandSample } from '../../../src/sharing/protocol/demand-groups.ts';
import { WorkerAccounts } from '../../../src/sharing/workers/worker-accounts.ts';
import type { GroupShares } from '../../../src/sharing/workers/worker-protocol.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

describe('workers', () => {
  const accounts = new WorkerAccounts();
  const report = (worker: number, groups: DemandSample, now: number): void =>
    accounts.updateDemand({ want: 0, received: 0, weight: 1, groups }, accounts.open(worker, 0, 0), now);
  const sharesAt = (now: number): readonly GroupShares[] =>
    [1, 2, 3].map((worker) => accounts.groupShares(accounts.open(worker, 0, 0), now));

  test('a group is divided among the workers where it waits; where it does not wait, it does not count as returning', () => {
    report(1, { waiting: ['here', 'both'], returning: ['later', 'away'] }, 0);
    report(2, { waiting: ['both', 'away'], returning: ['later', 'here'] }, 0);
    report(3, { waiting: [], returning: ['later', 'alone'] }, 0);
    expect(sharesAt(0)).toEqual([
      {
        waiting: [['both', 1 / 2]],
        returning: [
          ['later', 1 / 3],
          ['away', 0],
        ],
      },
      {
        waiting: [['both', 1 / 2]],
        returning: [
          ['here', 0],
          ['later', 1 / 3],
        ],
      },
      { waiting: [], returning: [['later', 1 / 3]] },
    ]);
  });

  test('a list that is absent from a report continues to apply, and a list that is present replaces the earlier one', () => {
    report(1, { waiting: ['both'] }, 100);
    report(2, { returning: [] }, 100);
    expect(sharesAt(100)).toEqual([
      {
        waiting: [['both', 1 / 2]],
        returning: [
          ['later', 1 / 2],
          ['away', 0],
        ],
      },
      { waiting: [['both', 1 / 2]], returning: [] },
      { waiting: [], returning: [['later', 1 / 2]] },
    ]);
  });

  test('a group counts as waiting for half a second after its report, and as returning for five seconds', () => {
    expect(sharesAt(499)[0]?.waiting).toEqual([['both', 1 / 2]]);
    expect(sharesAt(500)[0]).toEqual({ waiting: [], returning: [['later', 1 / 2]] });
    expect(sharesAt(4999)[0]).toEqual({ waiting: [], returning: [['later', 1 / 2]] });
    expect(sharesAt(5000)).toEqual([1, 2, 3].map(() => ({ waiting: [], returning: [] })));
  });

  test('the groups of a worker that has ended do not count', () => {
    report(1, { waiting: ['both'] }, 6000);
    report(2, { waiting: ['both'] }, 6000);
    expect(sharesAt(6000)[0]?.waiting).toEqual([['both', 1 / 2]]);
    accounts.close(2);
    expect(accounts.groupShares(accounts.open(1, 0, 0), 6000)).toEqual({ waiting: [], returning: [] });
  });
});

describe('replicas', () => {
  const backend = new MemoryBackend();
  const report = (replicaId: string, { waiting = [], returning = [] }: DemandSample, now: number) => {
    const counts = { leasedTokens: 0, inFlight: 0, unanswered: 0, want: 0, weight: 1, roundTrip: 1 };
    const known = { epoch: 0, since: 0, rate: 100, ceiling: 100 };
    const groups = { waitingGroups: waiting, returningGroups: returning };
    const request = { replicaId, now, usage: [], ...counts, known, random: 0.5, ...groups };
    const { waitingReplicas, returningReplicas } = backend.serve(SHARED, upstreamSettings().rate, request, now);
    return [waitingReplicas, returningReplicas];
  };

  test('each receives the number of replicas where its groups count, until the end of the next window', () => {
    const start = 6000; // a multiple of the windows of 400 and 1500 ms
    expect(report('a', { waiting: ['both'], returning: ['later', 'own'] }, start)).toEqual([[1], [1, 1]]);
    expect(report('b', { waiting: ['both', 'own'], returning: ['later'] }, start)).toEqual([[2, 1], [2]]);
    // A group that waits at another replica does not count as returning here; that it waited here a moment ago does not count.
    expect(report('a', { returning: ['own', 'later', 'both'] }, start + 10)).toEqual([[], [0, 2, 0]]);
    expect(report('b', { returning: ['own'] }, start + 10)).toEqual([[], [2]]);
    expect(report('a', { returning: ['own', 'later', 'both'] }, start + 800)).toEqual([[], [2, 2, 1]]);
    expect(report('a', { waiting: ['both'] }, start + 1200)).toEqual([[1], []]);
    expect(report('a', { returning: ['later', 'own'] }, start + 2999)).toEqual([[], [2, 2]]);
    expect(report('a', { returning: ['later', 'own'] }, start + 3000)).toEqual([[], [1, 1]]);
  });
});
