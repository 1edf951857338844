import { describe, expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startLanguageModel } from '../../support/providers/language-model.ts';

const error = (type: string, code: string | null = null) => ({ error: { type, code, message: 'no' } });

describe('anthropic', () => {
  test('waits after a 429, for a message too, and retries after a 529, which has no effect', async () => {
    let refused = 0;
    const api = await startLanguageModel((path) => {
      if (path === '/v1/overloaded') return { status: 529, body: error('overloaded_error') };
      refused += 1;
      if (refused > 1) return undefined;
      return { status: 429, headers: { 'Retry-After': '1' }, body: error('rate_limit_error') };
    });
    const { send, throttled } = await startProviderProxy('anthropic', api);
    const message = await send('POST', '/v1/messages', { intent: 'm', body: '{}' });
    expect([message.status, message.header('tidegate-attempts')]).toEqual([200, '2']);
    expect(await throttled('rate_limit_error')).toBe(1);
    const overloaded = await send('POST', '/v1/overloaded', { body: '{}' });
    expect([overloaded.status, overloaded.header('tidegate-outcome')]).toEqual([529, undefined]);
  });

  test('holds only the key whose quota is used up, not other keys at the same address', async () => {
    const left = new Map([
      ['a', 1],
      ['b', 100],
    ]);
    const sent: string[] = [];
    const api = await startLanguageModel((_, headers) => {
      const key = String(headers['x-api-key']);
      sent.push(key);
      left.set(key, (left.get(key) ?? 0) - 1);
      return {
        status: 200,
        headers: {
          'anthropic-ratelimit-requests-limit': '100',
          'anthropic-ratelimit-requests-remaining': String(left.get(key)),
          'anthropic-ratelimit-requests-reset': new Date(Date.now() + 60_000).toISOString(),
        },
      };
    });
    const { send } = await startProviderProxy('anthropic', api, 'queue: {maxWait: 0s}');
    const statuses: number[] = [];
    for (const key of ['a', 'b', 'b', 'b', 'a']) {
      statuses.push((await send('POST', '/v1/messages', { headers: ['x-api-key', key], body: '{}' })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429]);
    expect(sent).toEqual(['a', 'b', 'b', 'b']);
  });
});

describe('openai', () => {
  test('forwards a spent budget at once, and does not cut the rate', async () => {
    const api = await startLanguageModel((path) =>
      path === '/v1/slow'
        ? { status: 503, body: error('server_error') }
        : { status: 429, body: error('insufficient_quota', 'insufficient_quota') },
    );
    const { send, cuts } = await startProviderProxy('openai', api);
    const answer = await send('POST', '/v1/responses', { body: '{}' });
    expect([answer.status, answer.header('tidegate-attempts'), await cuts()]).toEqual([429, '1', 0]);
    const slow = await send('POST', '/v1/slow', { body: '{}' });
    expect([slow.status, slow.header('tidegate-outcome')]).toEqual([503, undefined]);
  });
});
