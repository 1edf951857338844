import { expect, onTestFinished, test, vi } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const DATE = 'Wed, 21 Oct 2026 07:28:00 GMT';
const TWO_SECONDS_LATER = 'Wed, 21 Oct 2026 07:28:02 GMT';

function withFixedRandom(): void {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => spy.mockRestore());
}

test('waits for a Retry-After of 2 at least two seconds, and not much longer', async () => {
  const forms: Record<string, { status: number; headers: string[] }> = {
    '/503': { status: 503, headers: ['Retry-After', '2'] },
    '/429': { status: 429, headers: ['Retry-After', '2'] },
    '/date': { status: 503, headers: ['Date', DATE, 'Retry-After', TWO_SECONDS_LATER] },
    '/millis': { status: 503, headers: ['retry-after-ms', '2000'] },
  };
  const waits = await Promise.all(
    Object.entries(forms).map(async ([target, { status, headers }]) => {
      const upstream = await startHttpUpstream((n, response) =>
        response.writeHead(n === 1 ? status : 200, headers).end(),
      );
      const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
      const answer = await send(gate.url, target);
      expect(answer.status).toBe(200);
      expect(await gate.metric('tidegate_retry_backoff_seconds_count{upstream="api",source="hint"}')).toBe(1);
      const [first, second] = upstream.hits;
      const planned = await gate.metric('tidegate_retry_backoff_seconds_sum{upstream="api",source="hint"}');
      return { target, waited: second!.at - first!.at, planned };
    }),
  );
  for (const { waited, planned } of waits) {
    expect(waited).toBeGreaterThanOrEqual(2000);
    expect(planned).toBeGreaterThanOrEqual(2);
    expect(planned).toBeLessThanOrEqual(2.2); // jitter adds at most a tenth
  }
});

test('lets no client return too early even without jitter', async () => {
  withFixedRandom();
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    const isFirst = upstream.hits.filter((hit) => hit.target === target).length === 1;
    if (isFirst) response.writeHead(503, ['Retry-After', '1']).end();
    else response.end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {retryOn: ["503"], budget: {burst: 100}}}}
`);
  // Seven, because eight would look like an upstream that is down.
  const targets = Array.from({ length: 7 }, (_, i) => `/${i}`);
  await Promise.all(targets.map((target) => send(gate.url, target)));
  for (const target of targets) {
    const [first, second] = upstream.hits.filter((hit) => hit.target === target);
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(1000);
  }
});

test('holds a client for as long as it was asked to wait, and serves it afterwards', async () => {
  withFixedRandom();
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 1) response.writeHead(429, ['Retry-After', '1']).end();
    else response.end('served');
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
clients: {key: ["header:x-api-key"]}
`);
  const waiting = send(gate.url, '/', { headers: ['X-Api-Key', 'a'] });
  await vi.waitFor(() => expect(upstream.hits).toHaveLength(1));
  await vi.waitFor(() => expect(gate.view().clients.byState.held).toBe(1));
  const refused = await send(gate.url, '/', { headers: ['X-Api-Key', 'a'] });
  expect(refused.status).toBe(429);
  expect(refused.json()).toMatchObject({ reason: 'held', retryAfter: 1 });
  expect(refused.header('retry-after')).toBe('1');
  const other = await send(gate.url, '/', { headers: ['X-Api-Key', 'b'] });
  expect(other.status).toBe(200);
  expect((await waiting).body.toString()).toBe('served');
});
