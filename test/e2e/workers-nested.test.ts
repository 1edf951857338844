/** Several processes that share limits of endpoints under one of the account. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../support/admin-api.ts';
import { send } from '../support/send.ts';
import { eventually, startUpstream } from '../support/tidegate.ts';
import { startWorkers } from '../support/workers.ts';

test('are told as one limit, and what one learns of an endpoint, the other keeps to', async () => {
  const upstream = await startUpstream({
    limits: [
      {
        name: 'endpoint',
        path: ['/v1/{resource}'],
        limit: { kind: 'token-bucket', rate: 5, burst: 5 },
        reason: 'endpoint-rate',
      },
    ],
  });
  const gate = await startWorkers(`workers: 2
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, limits: [{name: endpoint, match: {path: "/v1/{resource}"}}]}}
`);
  const api = await openAdminApi(gate.adminUrl);
  const ask = (path: string) => Promise.all(Array.from({ length: 40 }, () => send(gate.url, path)));
  interface Told {
    readonly state: string;
    readonly nestedLimits: readonly { readonly limits: number; readonly rate: number | null }[];
  }
  const readNested = async () => {
    const { upstreams } = (await api.get('/api/status')).json() as { readonly upstreams: readonly Told[] };
    expect(upstreams[0]?.state).toBe('open');
    return upstreams[0]?.nestedLimits[0];
  };

  // What comes at once tells little of a rate: it is learned as requests go on coming, to both.
  await eventually(
    async () => {
      await ask('/v1/charges');
      return readNested();
    },
    (told) => told !== undefined && told.rate !== null && told.rate < 10,
    40_000,
  );
  // Both workers pace it now: what comes at once is refused by us, and the upstream sees little of it.
  const { rejected } = upstream.stats();
  const later = await ask('/v1/charges');
  expect(later.some(({ status }) => status === 429)).toBe(true);
  expect(upstream.stats().rejected - rejected).toBeLessThan(10);

  const refunds = await ask('/v1/refunds?x');
  expect(refunds.some(({ status }) => status === 200)).toBe(true);
  expect((await readNested())?.limits).toBe(2);
  const metrics = await (await fetch(`${gate.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(
    /^tidegate_ratelimit_rate_requests_per_second\{upstream="api",limit="endpoint",scope="upstream"\} \d/m,
  );
}, 90_000);
