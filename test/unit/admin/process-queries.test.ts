import { Writable } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { WorkerQueryHandlers } from '../../../src/process/cluster/worker-query-handlers.ts';
import { answerQuery } from '../../../src/process/cluster/worker-query-handlers.ts';
import { PendingQueries } from '../../../src/process/cluster/pending-queries.ts';
import { WorkerKeyInspection } from '../../../src/process/cluster/worker-key-inspection.ts';
import { WorkerQueryDispatch } from '../../../src/process/cluster/worker-query-dispatch.ts';
import type { WriteMatches } from '../../../src/core/idempotency/key-inspection.ts';
import { createLogger } from '../../../src/telemetry/log/logger.ts';

describe('a query to the workers', () => {
  const answerOf = (worker: number, number = 1) =>
    ({ type: 'answer', number, name: 'reset', result: [`u${worker}`] }) as const;

  test('is complete when every worker has answered, cannot answer, or has exited', async () => {
    const queried: number[] = [];
    const questions = new PendingQueries((worker) => queried.push(worker));
    const answers = questions.ask([1, 2, 3, 4], 'reset', () => ({ client: 'c' }));
    expect(queried).toEqual([1, 2, 3, 4]);
    questions.onResult(1, answerOf(1));
    questions.onResult(3, answerOf(3));
    questions.onUnanswered(2, 1);
    questions.onWorkerExit(3);
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    questions.onWorkerExit(4);
    // It waits for no timeout. The answer of an exited worker is left out: its last report is counted elsewhere.
    expect(await answers).toEqual(new Map([[1, ['u1']]]));
  });

  test('ignores the result of another query', async () => {
    const questions = new PendingQueries(() => undefined);
    const first = questions.ask([1], 'reset', () => ({ client: 'c' }));
    const second = questions.ask([1], 'reset', () => ({ client: 'd' }));
    questions.onResult(1, answerOf(7, 2));
    questions.onResult(1, answerOf(8, 1));
    expect([await first, await second]).toEqual([new Map([[1, ['u8']]]), new Map([[1, ['u7']]])]);
  });
});

describe('the keys that workers share over Redis', () => {
  const MATCHES: WriteMatches = { total: 0, matching: 0, writes: [], isTruncated: false };

  function ask(serving: readonly number[]) {
    const asked: { readonly worker: number; readonly number: number; readonly name: string }[] = [];
    const pending = new PendingQueries((worker, { number, name }) => asked.push({ worker, number, name }));
    const workers = new Map([1, 2, 3].map((worker) => [worker, {}]));
    const keys = new WorkerKeyInspection(new WorkerQueryDispatch(pending, workers, new Set(serving)));
    return { asked, pending, keys };
  }

  test('are read by one serving worker', async () => {
    const { asked, pending, keys } = ask([2, 3]);
    const listed = keys.list({ order: 'newest', limit: 1 });
    expect(asked).toEqual([{ worker: 2, number: 1, name: 'keys' }]);
    pending.onResult(2, { type: 'answer', number: 1, name: 'keys', result: MATCHES });
    expect(await listed).toEqual(MATCHES);
    const forgotten = keys.forget('0123');
    pending.onResult(2, { type: 'answer', number: 2, name: 'forgetKey', result: { kind: 'unknown' } });
    expect(await forgotten).toEqual({ kind: 'unknown' });
    expect(asked.slice(1)).toEqual([{ worker: 2, number: 2, name: 'forgetKey' }]);
  });

  test('are unavailable without a serving worker, and if that worker exits or cannot answer', async () => {
    const unavailable = (why: string) => ({ kind: 'unavailable', why });
    const none = unavailable('Redis has the keys, and no worker that reads them responds. Try again.');
    expect(await ask([]).keys.list({ order: 'newest', limit: 1 })).toEqual(none);
    const { pending, keys } = ask([2]);
    const found = keys.find('0123');
    pending.onWorkerExit(2);
    expect(await found).toEqual(none);
    const forgotten = keys.forget('0123');
    pending.onUnanswered(2, 2);
    // The worker may have forgotten it before it exited.
    expect(await forgotten).toEqual({ kind: 'unconfirmed', write: undefined });
  });
});

test('a worker that cannot answer a query reports that, and continues', async () => {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const fail = (): never => {
    throw new Error('no such thing');
  };
  const by: WorkerQueryHandlers = {
    metrics: fail,
    view: fail,
    clients: () => Promise.reject(new Error('nor this')),
    requests: fail,
    timeline: () => [],
    rates: fail,
    explain: fail,
    applyOverride: fail,
    reset: fail,
    keys: fail,
    key: fail,
    forgetKey: fail,
    delivery: fail,
    deliveryTotals: fail,
  };
  const logger = createLogger({ level: 'info', destination });
  const ask = { type: 'question', number: 5 } as const;
  expect(await answerQuery(by, { ...ask, name: 'reset', input: { client: 'c' } }, logger)).toEqual({
    type: 'unanswered',
    number: 5,
  });
  expect(await answerQuery(by, { ...ask, name: 'clients', input: { limit: 1, at: 0 } }, logger)).toEqual({
    type: 'unanswered',
    number: 5,
  });
  expect(await answerQuery(by, { ...ask, name: 'timeline', input: { since: 0 } }, logger)).toMatchObject({
    result: [],
  });
  expect(lines.join('')).toMatch(/no such thing[^]*nor this/);
});
