/** How the notices of accounts get from one worker to the others, and to those that join later. */
import { expect, test } from 'vitest';
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import type { AccountNotice } from '../../../src/core/accounts/account-notice.ts';
import type { Account } from '../../../src/core/accounts/account.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { KeptUpdates } from '../../../src/sharing/workers/kept-updates.ts';
import type { LimitUpdates, UsageReport } from '../../../src/sharing/workers/worker-protocol.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import { NoticeOutbox } from '../../../src/sharing/protocol/notice-outbox.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';

const QUARANTINE = { statuses: new Set([401]), after: 1, interval: 30_000, maxInterval: 600_000 };
const TIMES = { since: 0, evidenceSentAt: 0, interval: 30_000, probeAt: 30_000, trialAt: 30_000 };
const CLIENTS = { isCommon: false, fairnessKey: 'one', clients: ['one'] };

function noticeOf(account: string, isQuarantined = true): AccountNotice {
  const notice = { upstream: 'api', account, credentialTag: 'tag', acceptedSentAt: 1 };
  return isQuarantined ? { ...notice, quarantine: { ...TIMES, ...CLIENTS } } : notice;
}

interface TestWorker {
  readonly client: LimitClient;
  readonly account: Account;
  readonly reports: UsageReport[];
  readonly scheduled: number[];
  readonly store: MemoryStore;
}

function startWorker(): TestWorker {
  const [reports, scheduled]: [UsageReport[], number[]] = [[], []];
  const client = new LimitClient({
    schedule: (within) => void scheduled.push(within),
    send: (report) => void reports.push(report),
  });
  const accounts = [{ name: 'main', credential: new AccountCredential('Authorization', 'secret') }];
  const store = new MemoryStore({
    upstreams: [upstreamSettings({ name: 'api', scope: 'credential', accounts: { accounts, quarantine: QUARANTINE } })],
    maxTracked: 10,
    random: () => 0.5,
    listen: () => undefined,
    sharingHooks: client,
    hash: (text) => text,
  });
  client.bind({ store, onTokensSupplied: () => undefined }, 0);
  const [account] = store.upstream('api').accounts?.accounts ?? [];
  if (account === undefined) throw new Error('no account');
  return { client, account, reports, scheduled, store };
}

const reject = ({ account }: TestWorker, client: string, now: number): unknown =>
  account.onRejected({ client, fairnessKey: 'one' }, now, QUARANTINE, now);

test('a worker reports the latest state of an account at most every 50 ms', () => {
  const worker = startWorker();
  reject(worker, 'one', 0);
  worker.client.flush(0);
  reject(worker, 'two', 1);
  reject(worker, 'three', 2);
  worker.client.flush(3);
  expect(worker.reports).toHaveLength(1);
  expect(worker.scheduled.at(-1)).toBe(47);
  worker.client.flush(50);
  expect(worker.reports.map(({ accounts }) => accounts?.map(({ quarantine }) => quarantine?.clients))).toEqual([
    [['one']],
    [['one', 'two', 'three']],
  ]);
});

test('a worker that joins during a quarantine learns of it, and one that joins after it does not', () => {
  const workers = new Map<number, TestWorker>();
  const received: [number, LimitUpdates][] = [];
  let time = 0;
  const server = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: () => undefined,
      listen: () => undefined,
      send: (to, updates) => {
        received.push([to, updates]);
        workers.get(to)?.client.onUpdates(updates, time);
      },
      maxLimits: 10,
    },
    [],
  );
  const join = (id: number): TestWorker => {
    const worker = startWorker();
    workers.set(id, worker);
    server.join(id, 0);
    return worker;
  };
  const flush = (id: number, worker: TestWorker): void => {
    worker.client.flush(time);
    for (const report of worker.reports.splice(0)) server.onReport(id, report, time);
  };
  const [first, second] = [join(1), join(2)];
  reject(first, 'one', 0);
  flush(1, first);
  expect([second.account.isQuarantined, join(3).account.isQuarantined]).toEqual([true, true]);
  time = 200;
  second.account.onAccepted(100);
  flush(2, second);
  expect([first, second, join(4)].map(({ account }) => account.isQuarantined)).toEqual([false, false, false]);
  expect(received.map(([to]) => to)).toEqual([2, 3, 1, 3]);
});

test('a worker gets the quarantine of an account that its reload has added later than that of another worker', () => {
  const received: [number, LimitUpdates][] = [];
  const server = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: () => undefined,
      listen: () => undefined,
      send: (to, updates) => void received.push([to, updates]),
      maxLimits: 10,
    },
    [],
  );
  for (const worker of [1, 2]) server.join(worker, 0);
  server.onSettingsChanged([], 0);
  expect(received).toEqual([]);
  // Worker 2 does not have the account yet, and drops the notice.
  server.onReport(1, { limits: [], holds: [], accounts: [noticeOf('added')] }, 10);
  received.splice(0);
  server.onSettingsChanged([], 20);
  const notices = { limits: [], holds: [], accounts: [noticeOf('added')] };
  expect(received).toEqual([
    [1, notices],
    [2, notices],
  ]);
});

test('a removed upstream leaves no notice of its accounts to processes that start later', () => {
  const { client, account, reports, store } = startWorker();
  account.onRejected({ client: 'one', fairnessKey: 'one' }, 0, QUARANTINE, 0);
  client.flush(0);
  store.removeUpstream('api');
  client.flush(100);
  expect(reports.map(({ accounts }) => accounts?.map(({ quarantine }) => quarantine !== undefined))).toEqual([
    [true],
    [false],
  ]);
});

test('a notice that was not sent is replaced by a later one', () => {
  const outbox = new NoticeOutbox();
  outbox.add(noticeOf('main'));
  outbox.add(noticeOf('spare'));
  const unsent = outbox.take(0);
  outbox.add(noticeOf('main', false));
  outbox.restore(unsent);
  expect(outbox.take(49)).toEqual([]);
  expect(outbox.take(50)).toEqual([noticeOf('main', false), noticeOf('spare')]);
  expect(outbox.dueAt).toBeUndefined();
});

test('a notice does not replace that of another credential of the account', () => {
  const [outbox, kept] = [new NoticeOutbox(), new KeptUpdates()];
  const rotated = { ...noticeOf('main'), credentialTag: 'new' };
  for (const notice of [rotated, noticeOf('main', false)]) {
    outbox.add(notice);
    kept.add({ holds: [], accounts: [notice] }, 0);
  }
  expect(outbox.take(0)).toEqual([rotated, noticeOf('main', false)]);
  expect(kept.forJoin(0)?.accounts).toEqual([rotated]);
});

test('the last notices are kept until their account is in service, or its upstream is removed', () => {
  const kept = new KeptUpdates();
  kept.add({ holds: [], accounts: [noticeOf('main'), noticeOf('spare'), { ...noticeOf('main'), upstream: 'old' }] }, 0);
  kept.add({ holds: [], accounts: [noticeOf('main', false)] }, 0);
  kept.retain((upstream) => upstream === 'api');
  expect(kept.forJoin(0)?.accounts).toEqual([noticeOf('spare')]);
  kept.add({ holds: [], accounts: [noticeOf('spare', false)] }, 0);
  expect(kept.forJoin(0)).toBeUndefined();
  expect(kept.add({ holds: [] }, 0)).toBeUndefined();
});
