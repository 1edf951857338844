import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Answerers } from '../../src/process/cluster/worker-query-handlers.ts';
import { answer } from '../../src/process/cluster/worker-query-handlers.ts';
import { Questions } from '../../src/process/cluster/pending-queries.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

describe('what workers are asked', () => {
  const told = (worker: number, number = 1) =>
    ({ type: 'answer', number, name: 'reset', tells: [`u${worker}`] }) as const;

  test('is answered when all have answered, cannot, or have ended', async () => {
    const asked: number[] = [];
    const questions = new Questions((worker) => asked.push(worker));
    const answers = questions.ask([1, 2, 3, 4], 'reset', () => ({ client: 'c' }));
    expect(asked).toEqual([1, 2, 3, 4]);
    questions.hear(1, told(1));
    questions.hear(3, told(3));
    questions.unanswered(2, 1);
    questions.gone(3);
    const since = performance.now();
    questions.gone(4);
    // Of one that has ended, whoever counts its last words has done so.
    expect(await answers).toEqual(new Map([[1, ['u1']]]));
    expect(performance.now() - since).toBeLessThan(900);
  });

  test('is not what another question was answered', async () => {
    const questions = new Questions(() => undefined);
    const first = questions.ask([1], 'reset', () => ({ client: 'c' }));
    const second = questions.ask([1], 'reset', () => ({ client: 'd' }));
    questions.hear(1, told(7, 2));
    questions.hear(1, told(8, 1));
    expect([await first, await second]).toEqual([new Map([[1, ['u8']]]), new Map([[1, ['u7']]])]);
  });
});

test('who cannot answer says so, and goes on', async () => {
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
  const by: Answerers = {
    metrics: fail,
    look: fail,
    clients: () => Promise.reject(new Error('nor this')),
    requests: fail,
    moments: () => [],
    explain: fail,
    steer: fail,
    reset: fail,
  };
  const logger = createLogger({ level: 'info', destination });
  const ask = { type: 'question', number: 5 } as const;
  expect(await answer(by, { ...ask, name: 'reset', asks: { client: 'c' } }, logger)).toEqual({
    type: 'unanswered',
    number: 5,
  });
  expect(await answer(by, { ...ask, name: 'clients', asks: { limit: 1, at: 0 } }, logger)).toEqual({
    type: 'unanswered',
    number: 5,
  });
  expect(await answer(by, { ...ask, name: 'moments', asks: { since: 0 } }, logger)).toMatchObject({ tells: [] });
  expect(lines.join('')).toMatch(/no such thing[^]*nor this/);
});
