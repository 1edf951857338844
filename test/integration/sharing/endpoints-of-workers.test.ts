import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';

test('each of two workers checks the endpoints, and sends requests to the fallback', async () => {
  const [limited, sick, backup] = [
    await startSwitchableUpstream(),
    await startSwitchableUpstream(),
    await startSwitchableUpstream(),
  ];
  limited.answer((request, response) => {
    response.writeHead(request.url === '/healthz' ? 200 : 429, { 'Retry-After': '60' }).end();
  });
  sick.answer((request, response) => void response.writeHead(request.url === '/healthz' ? 503 : 200).end());
  const gate = await startWorkers(`
workers: 2
upstreams:
  main:
    urls: ["${limited.url}", "${sick.url}"]
    healthCheck: {path: /healthz, interval: 50ms}
    fallback: backup
    retry: {attempts: 1}
  backup: {url: "${backup.url}"}
routes: [{path: /, upstream: main}]
`);
  const ejecting = () =>
    gate.log().flatMap(({ msg, cause, worker }) => (msg === 'endpoint ejected' && cause === 'checks' ? [worker] : []));
  await eventually(ejecting, (workers) => workers.length >= 2);
  expect(new Set(ejecting())).toEqual(new Set([1, 2]));
  expect((await send(gate.url, '/')).status).toBe(429); // no other endpoint is in rotation: it holds the client
  const fallbacks = () => gate.sum('tidegate_upstream_fallbacks_total{upstream="main",reason="held"}');
  // The other worker holds the client a moment later.
  await eventually(
    () => send(gate.url, '/').then(fallbacks),
    (count) => count >= 4,
  );
  const bodies = await Promise.all([1, 2, 3, 4].map(async () => (await send(gate.url, '/')).body.toString()));
  expect(bodies).toEqual(['fine', 'fine', 'fine', 'fine']);
  expect(await gate.sum('tidegate_endpoint_checks_total{upstream="main"')).toBeGreaterThanOrEqual(4);
});
