import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { WorkerQueryHandlers } from '../../../src/process/cluster/worker-query-handlers.ts';
import { answerQuery } from '../../../src/process/cluster/worker-query-handlers.ts';
import { PendingQueries } from '../../../src/process/cluster/pending-queries.ts';
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
    const since = performance.now();
    questions.onWorkerExit(4);
    // The answer of an exited worker is left out: its last report is counted elsewhere.
    expect(await answers).toEqual(new Map([[1, ['u1']]]));
    expect(performance.now() - since).toBeLessThan(900);
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

test('a worker that cannot answer reports that, and continues', async () => {
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
