import { afterEach, describe, expect, test } from 'vitest';
import type { PracticeServer } from '../../../src/simulator/practice/practice-server.ts';
import { startPracticeServer } from '../../../src/simulator/practice/practice-server.ts';

/** So slow that a spent burst stays spent during a test. */
const THREE = { kind: 'token-bucket', rate: 0.001, burst: 3 } as const;

let practice: PracticeServer | undefined;
afterEach(() => practice?.close());

const ask = async (path: string, method = 'GET') => {
  const answer = await fetch(`${practice?.url}${path}`, { method });
  await answer.arrayBuffer();
  return [answer.status, answer.headers.get('stripe-rate-limited-reason')];
};

describe('a practice upstream with endpoint limits under an account limit', () => {
  test('rejects by the limit that is spent, and names it', async () => {
    practice = await startPracticeServer({
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

  test('counts each method separately where configured', async () => {
    practice = await startPracticeServer({
      limit: { kind: 'unlimited' },
      limits: [{ name: 'write', method: ['POST', 'PUT'], eachMethod: true, limit: { ...THREE, burst: 1 } }],
    });
    expect(await ask('/a', 'POST')).toEqual([200, null]);
    expect(await ask('/b', 'POST')).toEqual([429, null]);
    expect(await ask('/b', 'PUT')).toEqual([200, null]);
    expect(await ask('/b')).toEqual([200, null]);
  });
});
