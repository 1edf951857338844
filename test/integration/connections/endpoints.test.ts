import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EndpointBalancer } from '../../../src/core/endpoints/outlier-detection.ts';
import { pause } from '../../support/pause.ts';
import type { Received } from '../../support/clients/send.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import type { SwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const ejections = ({ url }: SwitchableUpstream) =>
  `tidegate_endpoint_ejections_total{upstream="api",endpoint="${new URL(url).host}"}`;
const healthy = ({ url }: SwitchableUpstream) =>
  `tidegate_endpoint_healthy{upstream="api",endpoint="${new URL(url).host}"}`;

const RETRY = 'retry: {backOff: {strategy: fixed, baseInterval: 5ms}}';

async function start(
  count: number,
  more = RETRY,
  failures = 3,
  ejection = 'baseEjectionTime: 300ms, maxEjectionTime: 600ms',
): Promise<{ gate: Tidegate; endpoints: [SwitchableUpstream, ...SwitchableUpstream[]] }> {
  const first = await startSwitchableUpstream();
  const others = await Promise.all(Array.from({ length: count - 1 }, () => startSwitchableUpstream()));
  const endpoints: [SwitchableUpstream, ...SwitchableUpstream[]] = [first, ...others];
  const urls = endpoints.map(({ url }) => `"${url}"`).join(', ');
  const gate = await startTidegate(`
upstreams:
  api:
    urls: [${urls}]
    outlierDetection: {consecutiveGatewayErrors: ${failures}, ${ejection}}
    ${more}
`);
  return { gate, endpoints };
}

async function ask(gate: Tidegate, times: number, at = 4, method = 'GET'): Promise<Received[]> {
  const agent = keepAlive();
  const answers: Received[] = [];
  await Promise.all(
    Array.from({ length: at }, async (_, i) => {
      for (let n = i; n < times; n += at) {
        answers.push(await send(gate.url, '/', { method, agent, ...(method === 'POST' ? { body: 'x' } : {}) }));
      }
    }),
  );
  return answers;
}

const statuses = (answers: readonly Received[]) => [...new Set(answers.map(({ status }) => status))];

describe('several endpoints', () => {
  test('share the requests', async () => {
    const { gate, endpoints } = await start(3);
    expect(statuses(await ask(gate, 60))).toEqual([200]);
    for (const { hits } of endpoints) expect(hits().length).toBeGreaterThanOrEqual(12);
  });

  test('send fewer requests to one that is slow', async () => {
    const { gate, endpoints } = await start(2);
    endpoints[0].answer((_, response) => void pause(200).then(() => response.end()));
    expect(statuses(await ask(gate, 80))).toEqual([200]);
    expect(endpoints[0].hits().length).toBeLessThan(20);
  });

  test('hide one that is down: it is ejected, and re-admitted once it is up', async () => {
    const { gate, endpoints } = await start(3);
    const [down] = endpoints;
    await down.stop();
    const answers = [...(await ask(gate, 60)), ...(await ask(gate, 60, 4, 'POST'))];
    expect(statuses(answers)).toEqual([200]);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
    expect(await gate.metric(ejections(down))).toBeGreaterThanOrEqual(1);
    expect(await gate.metric(healthy(down))).toBe(0);
    expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="errors"}')).toBe(0);
    expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(1);
    await down.start();
    await eventually(
      () => ask(gate, 4).then(() => gate.metric(healthy(down))),
      (is) => is === 1,
    );
    expect(statuses(await ask(gate, 30))).toEqual([200]);
    expect(down.hits().length).toBeGreaterThan(5);
    expect(
      gate
        .log()
        .filter(({ msg }) => msg === 'endpoint ejected' || msg === 'endpoint re-admitted')
        .at(-1),
    ).toMatchObject({
      level: 'info',
      upstream: 'api',
      endpoint: new URL(down.url).host,
      cause: 'trial',
    });
  });

  test('leave all requests to the third when two are down', async () => {
    const { gate, endpoints } = await start(3);
    await Promise.all([endpoints[0].stop(), endpoints[1]?.stop()]);
    expect(statuses(await ask(gate, 60, 4, 'POST'))).toEqual([200]);
    expect(endpoints[2]?.hits()).toHaveLength(60);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test('retry a 503 of one at another endpoint, and only once there', async () => {
    const { gate, endpoints } = await start(2, RETRY, 3, 'baseEjectionTime: 1m');
    endpoints[0].answer((_, response) => void response.writeHead(503).end());
    const answers = await ask(gate, 20, 1);
    expect(statuses(answers)).toEqual([200]);
    expect(answers.filter(({ headers }) => headers.includes('2')).length).toBe(endpoints[0].hits().length);
    expect(endpoints[0].hits()).toHaveLength(3); // then it is ejected
    expect(endpoints[1]?.hits()).toHaveLength(20);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test('retry a 503 of one at another endpoint, however busy that is', async () => {
    const { gate, endpoints } = await start(2, RETRY, 100);
    const [failing, busy] = [endpoints[0], endpoints[1] ?? endpoints[0]];
    failing.answer((_, response) => void response.writeHead(503).end());
    busy.answer((request, response) => void pause(request.url === '/slow' ? 1000 : 0).then(() => response.end()));
    // Both get requests: those that fail are retried at the other, and stay there.
    const slow = Array.from({ length: 4 }, () => send(gate.url, '/slow'));
    await eventually(busy.hits, (hits) => hits.length === 4);
    const before = failing.hits().length;
    expect((await send(gate.url, '/')).status).toBe(200);
    expect(failing.hits()).toHaveLength(before + 1);
    expect(statuses(await Promise.all(slow))).toEqual([200]);
  });

  test('report an unkeyed write at one that hangs as unknown, and use none as its re-admission trial', async () => {
    const { gate, endpoints } = await start(2, `perTryTimeout: 500ms\n    ${RETRY}`);
    endpoints[0].answer(() => undefined);
    const writes = await ask(gate, 12, 2, 'POST');
    const unknown = writes.filter((answer) => answer.header('tidegate-outcome') === 'unknown');
    expect(unknown.map(({ status }) => status)).toEqual([504, 504, 504]);
    expect(endpoints[0].hits()).toHaveLength(3);
    await pause(400); // a re-admission trial is due
    expect(statuses(await ask(gate, 6, 2, 'POST'))).toEqual([200]);
    expect(endpoints[0].hits()).toHaveLength(3);
    expect(statuses(await ask(gate, 2, 1))).toEqual([200]);
    expect(endpoints[0].hits()).toEqual(['POST', 'POST', 'POST', 'GET']);
  });

  test.each([
    ['GET', false, true],
    ['POST', false, false],
    ['POST', true, true],
  ])('try an ejected one with a %s with a key, with sharesKeys: %s: %s', async (method, sharesKeys, isTrial) => {
    const choose = vi.spyOn(EndpointBalancer.prototype, 'choose');
    onTestFinished(() => choose.mockRestore());
    const { gate } = await start(2, `idempotency: {sharesKeys: ${sharesKeys}}`);
    await send(gate.url, '/', { method, headers: ['Idempotency-Key', 'order'] });
    expect(choose.mock.calls.map(([, isRepeatable]) => isRepeatable)).toEqual([isTrial]);
  });

  test('stay in rotation when one path fails at all of them and other requests succeed', async () => {
    const { gate, endpoints } = await start(2);
    for (const endpoint of endpoints) {
      endpoint.answer((request, response) => void response.writeHead(request.url === '/bad' ? 503 : 200).end());
    }
    const good: Received[] = [];
    for (let n = 0; n < 20; n += 1) {
      await send(gate.url, '/bad');
      good.push(await send(gate.url, '/good'));
    }
    expect(statuses(good)).toEqual([200]);
    for (const endpoint of endpoints) expect(await gate.metric(ejections(endpoint))).toBe(0);
    // An endpoint that fails for all requests is ejected nevertheless.
    endpoints[0].answer((_, response) => void response.writeHead(503).end());
    await eventually(
      () => ask(gate, 4, 1).then(() => gate.metric(ejections(endpoints[0]))),
      (count) => count === 1,
    );
  });

  test('that all fail count as a failure of the upstream, and none is ejected', async () => {
    const { gate, endpoints } = await start(2);
    await Promise.all(endpoints.map((endpoint) => endpoint.stop()));
    await eventually(
      async () => {
        await ask(gate, 4);
        return gate.view().limits[0]?.state;
      },
      (state) => state === 'blocked',
    );
    for (const endpoint of endpoints) expect(await gate.metric(healthy(endpoint))).toBe(1);
    await endpoints[1]?.start();
    await eventually(
      () => send(gate.url, '/'),
      ({ status }) => status === 200,
    );
    await eventually(
      () => ask(gate, 4).then(() => gate.view().limits[0]?.state),
      (state) => state !== 'blocked',
    );
  });

  test('treat throttling by one as throttling by the upstream as a whole if the limit is the account’s', async () => {
    const { gate, endpoints } = await start(2, 'retry: {attempts: 1}\n    rateLimit: {of: account}');
    endpoints[0].answer((_, response) => void response.writeHead(429, { 'Retry-After': '1' }).end());
    await ask(gate, 2, 1);
    expect(gate.view().limits[0]?.state).not.toBe('open');
    expect(await gate.metric(ejections(endpoints[0]))).toBe(0);
  });
});

describe('the Host of a request', () => {
  const hostsOf = async (more: string) => {
    const { gate, endpoints } = await start(2, more);
    const seen: (string | undefined)[] = [];
    for (const endpoint of endpoints) {
      endpoint.answer((request, response) => {
        seen.push(request.headers.host);
        response.writeHead(seen.length === 1 ? 503 : 200).end(); // the retry uses the other endpoint
      });
    }
    await send(gate.url, '/', { headers: ['Host', 'client.example'] });
    return { seen, own: endpoints.map(({ url }) => new URL(url).host) };
  };

  test('is that of the endpoint, also for a retry', async () => {
    const { seen, own } = await hostsOf(RETRY);
    expect(seen).toEqual(own);
  });

  test('is the client’s with preserveHost', async () => {
    const { seen } = await hostsOf(`preserveHost: true\n    ${RETRY}`);
    expect(seen).toEqual(['client.example', 'client.example']);
  });
});
