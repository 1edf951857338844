/** Workers that share per-endpoint limits nested in the limit of the upstream. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

test('are reported as one limit, and both workers pace by the rate that either has learned', async () => {
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
  interface UpstreamRow {
    readonly state: string;
    readonly nestedLimits: readonly { readonly limits: number; readonly rate: number | null }[];
  }
  const readNested = async () => {
    const { upstreams } = (await api.get('/api/status')).json() as { readonly upstreams: readonly UpstreamRow[] };
    expect(upstreams[0]?.state).toBe('open');
    return upstreams[0]?.nestedLimits[0];
  };

  // A single burst reveals little about a rate, so requests are sent to both workers until it is learned.
  await eventually(
    async () => {
      await ask('/v1/charges');
      return readNested();
    },
    (nested) => nested !== undefined && nested.rate !== null && nested.rate < 10,
    40_000,
  );
  // Both workers now pace the endpoint: the proxy rejects most of a burst before it reaches the upstream.
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
});
