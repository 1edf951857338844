/** Requests that go to another upstream because theirs cannot serve them. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import type { SwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

async function start(main = '', backup = '', rest = '') {
  const [first, second] = [await startSwitchableUpstream(), await startSwitchableUpstream()];
  const gate = await startTidegate(`
upstreams:
  main: {url: "${first.url}", fallback: backup, retry: {attempts: 1}, queue: {maxWait: 0}${main}}
  backup: {url: "${second.url}", retry: {attempts: 1}, queue: {maxWait: 0}${backup}}
routes: [{path: /, upstream: main}]
${rest}
`);
  const fallbacks = (reason: string) =>
    gate.metric(`tidegate_upstream_fallbacks_total{upstream="main",reason="${reason}"}`);
  const ask = (method = 'GET', options: object = {}) => send(gate.url, '/', { method, ...options });
  return { gate, first, second, fallbacks, ask };
}

const reject: Parameters<SwitchableUpstream['answer']>[0] = (_, response) =>
  void response.writeHead(429, { 'Retry-After': '60' }).end();

describe('a request without effect', () => {
  test('goes to the fallback while its upstream has asked the client to wait', async () => {
    const { gate, first, second, fallbacks, ask } = await start();
    first.answer(reject);
    expect((await ask()).status).toBe(429); // the response that shows it is forwarded
    const answer = await ask();
    expect([answer.status, answer.body.toString()]).toEqual([200, 'fine']);
    expect([first.hits().length, second.hits().length, await fallbacks('held')]).toEqual([1, 1, 1]);
    const request = await eventually(
      () => gate.requests(),
      (lines) => lines.length === 2,
    );
    expect(request[1]).toMatchObject({
      route: '/',
      upstream: 'backup',
      fallbackFrom: 'main',
      status: 200,
      attempts: 1,
    });
    expect(request[0]).not.toHaveProperty('fallbackFrom');
    expect(await gate.metric('tidegate_requests_total{route="/",method="GET",code="200",outcome="forwarded"}')).toBe(1);
    expect(await gate.metric('tidegate_requests_total{route="/",method="GET",code="429",outcome="refused"}')).toBe(0);
    expect(await gate.metric('tidegate_requests_in_flight{route="/"}')).toBe(0);
  });

  test('goes to the fallback if no endpoint of its upstream accepts a connection', async () => {
    const { first, second, fallbacks, ask } = await start();
    await first.stop();
    expect((await ask()).status).toBe(200);
    expect([second.hits().length, await fallbacks('connect')]).toEqual([1, 1]);
  });

  test('goes to the fallback while its upstream is blocked', async () => {
    const { first, fallbacks, ask } = await start();
    await first.stop();
    await eventually(
      () => ask().then(() => fallbacks('blocked')),
      (count) => count > 0,
    );
    expect((await ask('HEAD')).status).toBe(200);
  });

  test('goes to the fallback while a quota of its upstream is used up', async () => {
    const { first, second, fallbacks, ask } = await start(', quotas: [{limit: 1, per: rolling 24h}]');
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
    expect([first.hits().length, second.hits().length, await fallbacks('quota_exceeded')]).toEqual([1, 1, 1]);
    expect((await ask('POST')).status).toBe(429);
  });

  test('gets the credential of the account of the fallback', async () => {
    const account = (token: string): string => `, accounts: [{name: main, value: ${token}}]`;
    const { first, second, ask } = await start(account('of-main'), account('of-backup'));
    await first.stop();
    second.answer(({ headers }, response) => void response.end(headers.authorization));
    const answer = await ask('GET', { headers: ['Authorization', 'of-client'] });
    expect(answer.body.toString()).toBe('of-backup');
  });

  test('is counted against the limits of the fallback, and refused if these are used up', async () => {
    const { first, fallbacks, ask } = await start('', ', rateLimit: {initialRate: 1/h, maxRate: 1/h, minRate: 1/h}');
    first.answer(reject);
    await ask();
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 429]);
    expect(await fallbacks('held')).toBe(2);
    const refused = await ask();
    expect(refused.header('proxy-status')).toContain('details="over_share"');
  });

  test('has one explanation, with the reason of the fallback', async () => {
    const { gate, first, ask } = await start();
    first.answer(reject);
    await ask();
    const id = (await ask()).header('tidegate-request-id');
    const explanation = (await (await fetch(`${gate.adminUrl}/explain/${id}`)).json()) as {
      upstream: string;
      steps: { what: string; text: string }[];
    };
    expect(explanation.upstream).toBe('backup');
    expect(explanation.steps.map(({ what }) => what)).toEqual([
      'arrived',
      'decided',
      'fallback',
      'decided',
      'sent',
      'answered',
      'verdict',
    ]);
    expect(explanation.steps[2]?.text).toBe('main did not process the request (held): sent to its fallback backup');
  });
});

describe('a request stays with its upstream', () => {
  test('if its path is another spelling of one that clients need a credential for at the fallback', async () => {
    const { path, ...certificates } = makeCertificates();
    atEnd(() => Promise.resolve(certificates.remove()));
    const keys = path('keys');
    writeFileSync(keys, '');
    const [first, second] = [await startSwitchableUpstream(), await startSwitchableUpstream()];
    const gate = await startTidegate(`
clients: {auth: {apiKeys: {header: X-Api-Key, file: "${keys}"}}}
upstreams:
  main: {url: "${first.url}", fallback: backup, retry: {attempts: 1}}
  backup: {url: "${second.url}"}
routes:
  - {path: /, upstream: main, auth: none}
  - {path: /admin, upstream: backup}
  - {path: /guarded, upstream: main}
  - {path: /copy, upstream: backup, auth: none, rewritePrefix: /}
`);
    await first.stop();
    expect((await send(gate.url, '/%61dmin')).status).toBe(502);
    expect((await send(gate.url, '/copy/Guarded')).status).toBe(400); // its own route leads here by the fallback
    expect(second.hits()).toEqual([]);
    expect((await send(gate.url, '/open')).status).toBe(200);
  });

  test('in observe mode', async () => {
    const { first, second, ask } = await start('', '', 'mode: observe');
    await first.stop();
    expect((await ask()).status).toBe(502);
    expect(second.hits()).toEqual([]);
  });

  test.each<[string, string, object]>([
    ['it may have an effect', 'POST', { body: 'x' }],
    ['it is idempotent, but has an effect', 'PUT', { body: 'x' }],
    ['it has a body', 'GET', { body: 'x' }],
    ['it deletes', 'DELETE', {}],
  ])('if %s', async (_, method, options) => {
    const { first, second, ask } = await start();
    first.answer(reject);
    await ask();
    const { status, header } = await ask(method, options);
    expect([status, header('proxy-status')]).toEqual([429, 'tidegate; error=http_request_denied; details="held"']);
    expect(second.hits()).toEqual([]);
  });

  test('if it was sent and got no response', async () => {
    const { first, second, ask } = await start();
    first.answer((request) => request.socket.destroy());
    expect((await ask()).status).toBe(502);
    expect(second.hits()).toEqual([]);
  });
});
