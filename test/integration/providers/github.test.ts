import { describe, expect, test } from 'vitest';
import { startProviderProxy } from '../../support/providers/provider-proxy.ts';
import { startGitHub } from '../../support/providers/github.ts';

const epoch = () => Date.now() / 1000;

test('sends nothing until a second after the reset of a spent quota, so that no request is rejected', async () => {
  const hour = { left: 3, resetAt: Math.ceil(epoch()) + 2 };
  const { resetAt } = hour;
  const github = await startGitHub(hour);
  const { send } = await startProviderProxy('github', github, 'queue: {maxWait: 8s}');
  const answers = [];
  for (let i = 0; i < 4; i += 1) answers.push(await send('GET', '/repos'));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(epoch()).toBeGreaterThanOrEqual(resetAt + 1);
  expect([github.refused(), github.arrivals.length]).toEqual([0, 4]);
});

test('treats a 403 for a spent quota as a 429, and waits', async () => {
  const hour = { left: 0, resetAt: Math.ceil(epoch()) + 2 };
  const { resetAt } = hour;
  const github = await startGitHub(hour);
  const { send, throttled } = await startProviderProxy('github', github);
  const answer = await send('GET', '/repos');
  expect([answer.status, answer.header('tidegate-attempts'), github.refused()]).toEqual([200, '2', 1]);
  expect(epoch()).toBeGreaterThanOrEqual(resetAt + 1);
  expect(await throttled('unspecified')).toBe(1);
});

test('forwards a 403 for missing permission at once, and learns nothing from it', async () => {
  const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
  const { send, throttled, cuts } = await startProviderProxy('github', github);
  for (let i = 0; i < 5; i += 1) {
    const answer = await send('GET', '/forbidden');
    expect([answer.status, answer.header('tidegate-attempts')]).toEqual([403, '1']);
  }
  expect([await throttled('.*'), await cuts()]).toEqual([0, 0]);
});

test('recognizes a secondary limit by its message, forwards it, and holds the client for a minute', async () => {
  const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
  const { send, throttled } = await startProviderProxy('github', github);
  const first = await send('GET', '/secondary');
  expect([first.status, first.json()['message']]).toEqual([403, expect.stringContaining('secondary rate limit')]);
  const second = await send('GET', '/repos');
  expect(second.status).toBe(429);
  expect(Number(second.header('retry-after'))).toBeGreaterThan(30);
  expect([github.arrivals.length, await throttled('.*')]).toEqual([1, 1]);
});

test.each([
  ['GET', '/search/secondary', '', 'points', 900],
  ['POST', '/graphql', '{"query":"costly"}', 'graphql-points', 2000],
])(
  'counts a secondary limit against its points, whatever its headers report (%s %s)',
  async (method, path, body, limit, perMinute) => {
    const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
    const { send, tidegate } = await startProviderProxy('github', github);
    await send(method, path, body === '' ? {} : { body });
    const { limits } = tidegate.view();
    const rates = new Map(limits.map(({ nested, rate }) => [nested, rate]));
    expect(rates.get(limit) ?? Infinity).toBeLessThan(perMinute / 60);
    expect(rates.get('search') ?? 0.5).toBeGreaterThanOrEqual(0.5);
    expect([rates.get('') ?? Infinity, rates.get('graphql') ?? Infinity]).toEqual([Infinity, Infinity]);
  },
);

test('opens an issue once', async () => {
  const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
  const { send } = await startProviderProxy('github', github);
  github.planFaults('issue', 'reset-after');
  expect((await send('POST', '/repos/a/b/issues', { intent: 'issue', body: '{}' })).status).toBe(504);
  expect(Object.fromEntries(github.charges)).toEqual({ issue: 1 });
});

test('treats a GraphQL 200 for spent points as a 429: forwards it, and sends nothing before the reset', async () => {
  const github = await startGitHub({ left: 0, resetAt: Math.ceil(epoch()) + 60 });
  const { send, throttled } = await startProviderProxy('github', github);
  const first = await send('POST', '/graphql', { body: '{}' });
  expect([first.status, first.json()['errors']]).toEqual([200, [expect.objectContaining({ type: 'RATE_LIMITED' })]]);
  const second = await send('POST', '/graphql', { body: '{}' });
  expect(second.status).toBe(429);
  expect(Number(second.header('retry-after'))).toBeGreaterThan(30);
  expect([github.arrivals.length, await throttled('RATE_LIMITED')]).toEqual([1, 1]);
});

test('recognizes a secondary limit in a GraphQL 200 by its message, and holds the client for a minute', async () => {
  const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
  const { send, throttled } = await startProviderProxy('github', github);
  expect((await send('POST', '/graphql', { body: '{"query":"costly"}' })).status).toBe(200);
  const second = await send('POST', '/graphql', { body: '{}' });
  expect(second.status).toBe(429);
  expect(Number(second.header('retry-after'))).toBeGreaterThan(30);
  expect(Number(second.header('retry-after'))).toBeLessThanOrEqual(60);
  expect([github.arrivals.length, await throttled('.*')]).toEqual([1, 1]);
});

test('treats a GraphQL 200 with other errors as an ordinary response', async () => {
  const github = await startGitHub({ left: 5000, resetAt: Math.ceil(epoch()) + 3600 });
  const { send, throttled } = await startProviderProxy('github', github);
  for (let i = 0; i < 3; i += 1) expect((await send('POST', '/graphql', { body: '{}' })).status).toBe(200);
  expect([github.arrivals.length, await throttled('.*')]).toEqual([3, 0]);
});

describe.each([
  ['/orgs/x/audit-log', 'audit_log', 'in the preset'],
  ['/new', 'new_resource', 'not in the preset'],
])('the used-up quota of another resource (%s: %s, %s)', (path, name, place) => {
  test.each([200, 403, 429])('holds no other path of the token, after a %i', async (overrun) => {
    const isKnown = place === 'in the preset';
    const hour = { left: 5000, resetAt: Math.ceil(epoch()) + 3600 };
    const left = overrun === 200 ? 1 : 0;
    const github = await startGitHub(hour, { path, name, limit: 1750, left, overrun });
    const { send, cuts } = await startProviderProxy('github', github);
    const ask = (where: string) => send('GET', where, { headers: ['Authorization', 'Bearer a'] });
    for (let i = 0; i < 3; i += 1) expect((await ask('/repos/a/b')).status).toBe(200);
    expect((await ask(path)).status).toBe(overrun);
    for (let i = 0; i < 3; i += 1) expect((await ask('/repos/a/b')).status).toBe(200);
    expect(github.arrivals).toHaveLength(7);
    // The path itself is held only if the preset knows of its limit.
    const again = await ask(path);
    expect([again.status, github.arrivals.length]).toEqual(isKnown ? [429, 7] : [overrun, 8]);
    if (isKnown) expect(Number(again.header('retry-after'))).toBeGreaterThan(200);
    expect(await cuts()).toBe(isKnown && overrun !== 200 ? 1 : 0);
  });
});

test('the used-up quota of core holds the token on every path of core, whichever path reported it', async () => {
  const github = await startGitHub({ left: 1, resetAt: Math.ceil(epoch()) + 3600 });
  const { send } = await startProviderProxy('github', github);
  // This path usually reports the quota of another resource.
  expect((await send('GET', '/orgs/x/audit-log')).status).toBe(200);
  expect((await send('GET', '/repos/a/b')).status).toBe(429);
  expect(github.arrivals).toHaveLength(1);
});
