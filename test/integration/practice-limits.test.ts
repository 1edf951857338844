import { afterEach, describe, expect, test } from 'vitest';
import type { Practice } from '../../src/simulator/practice/practice-server.ts';
import { startPractice } from '../../src/simulator/practice/practice-server.ts';

/** So slow that what is left after a burst stays so while a test runs. */
const THREE = { kind: 'token-bucket', rate: 0.001, burst: 3 } as const;

let practice: Practice | undefined;
afterEach(() => practice?.close());

const ask = async (path: string, method = 'GET') => {
  const answer = await fetch(`${practice?.url}${path}`, { method });
  await answer.arrayBuffer();
  return [answer.status, answer.headers.get('stripe-rate-limited-reason')];
};

describe('a practice upstream with limits of endpoints beneath one of the account', () => {
  test('refuses by the one that is spent, and says which', async () => {
    practice = await startPractice({
      limit: { kind: 'token-bucket', rate: 0.001, burst: 5 },
      reason: 'global-rate',
      limits: [
        { name: 'endpoint', path: ['/v1/{resource}', '/v1/{resource}/**'], limit: THREE, reason: 'endpoint-rate' },
      ],
    });
    for (let i = 0; i < 3; i += 1) expect(await ask('/v1/charges')).toEqual([200, null]);
    expect(await ask('/v1/charges/ch_1')).toEqual([429, 'endpoint-rate']);
    expect(await ask('/v1/refunds')).toEqual([200, null]);
    expect(await ask('/other')).toEqual([200, null]);
    expect(await ask('/v1/refunds')).toEqual([429, 'global-rate']);
  });

  test('counts each method by itself where it is told to', async () => {
    practice = await startPractice({
      limit: { kind: 'unlimited' },
      limits: [{ name: 'write', method: ['POST', 'PUT'], eachMethod: true, limit: { ...THREE, burst: 1 } }],
    });
    expect(await ask('/a', 'POST')).toEqual([200, null]);
    expect(await ask('/b', 'POST')).toEqual([429, null]);
    expect(await ask('/b', 'PUT')).toEqual([200, null]);
    expect(await ask('/b')).toEqual([200, null]);
  });
});
