import { expect, test } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const count = (labels: string) => `tidegate_requests_total{route="/",${labels}}`;
const fast = 'retry: {backOff: {strategy: fixed, baseInterval: 1ms}}';

test('counts forwarded, recovered, unknown, refused and client_gone by method and code', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${fast}}}`);
  let id = 0;
  const scripted = (method: string, script: string) =>
    send(gate.url, '/', { method, headers: ['X-Practice-Id', `i${(id += 1)}`, 'X-Practice-Script', script] });
  await scripted('GET', '200');
  await scripted('PUT', '404');
  await scripted('DELETE', '503');
  await scripted('GET', '503, 200');
  await scripted('PROPFIND', '200');
  await scripted('POST', '500');
  const { received } = upstream.stats();
  const isThere = () => upstream.stats().received > received;
  await sendAndLeave(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] }, isThere);
  await scripted('GET', '429; retry-after=100');
  await send(gate.url, '/'); // held
  await eventually(gate.requests, ({ length }) => length === 9);

  expect(await gate.metric(count('method="GET",code="200",outcome="forwarded"'))).toBe(1);
  expect(await gate.metric(count('method="PUT",code="404",outcome="forwarded"'))).toBe(1);
  expect(await gate.metric(count('method="DELETE",code="503",outcome="forwarded"'))).toBe(1);
  expect(await gate.metric(count('method="GET",code="200",outcome="recovered"'))).toBe(1);
  expect(await gate.metric(count('method="other",code="200",outcome="forwarded"'))).toBe(1);
  expect(await gate.metric(count('method="POST",code="500",outcome="unknown"'))).toBe(1);
  expect(await gate.metric(count('method="GET",code="other",outcome="client_gone"'))).toBe(1);
  expect(await gate.metric(count('method="GET",code="429",outcome="forwarded"'))).toBe(1);
  expect(await gate.metric(count('method="GET",code="429",outcome="refused"'))).toBe(1);
  expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(1);
  expect(await gate.metric('tidegate_request_duration_seconds_count{route="/",code_class="2xx"}')).toBe(3);
  expect(await gate.metric('tidegate_requests_in_flight{route="/"}')).toBe(0);
});

test('counts upstream_error when no response was received', async () => {
  const url = await refusingUrl();
  const gate = await startTidegate(`upstreams: {api: {url: "${url}", ${fast}}}`);
  const answer = await send(gate.url, '/');
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([502, '4']);
  expect(gate.requests()).toMatchObject([{ attempts: 4, endpoint: new URL(url).host }]);
  expect(await gate.metric(count('method="GET",code="502",outcome="upstream_error"'))).toBe(1);
  const exposition = await (await fetch(`${gate.adminUrl}/metrics`)).text();
  const attempts = exposition.split('\n').filter((line) => /^tidegate_upstream_attempts_total\{.*[1-9]$/.test(line));
  expect(attempts.toSorted()).toEqual(
    ['1', '2', '3', '4+'].map(
      (attempt) => `tidegate_upstream_attempts_total{upstream="api",attempt="${attempt}",code="connect"} 1`,
    ),
  );
});

test('counts queue_timeout when its turn moved back while it waited', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    // The second response reports a nearly spent quota: from then on, one request in ten seconds.
    const quota = ['RateLimit-Policy', '"api";q=100;w=1000', 'RateLimit', `"api";r=${n === 2 ? 1 : 99};t=10`];
    response.writeHead(200, quota).end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 5/s}, queue: {maxWait: 600ms}}}
clients: {key: ["header:x-api-key"]}
`);
  const ask = () => send(gate.url, '/', { headers: ['X-Api-Key', 'a'] });
  const [first, second, third] = await Promise.all([ask(), ask(), ask()]);
  expect([first?.status, second?.status, third?.status]).toEqual([200, 200, 429]);
  expect(third?.json()).toMatchObject({ reason: 'queue_timeout' });
  expect(third?.took).toBeGreaterThanOrEqual(500);
  expect(Number(third?.header('retry-after'))).toBeGreaterThan(1);
  expect(await gate.metric(count('method="GET",code="429",outcome="queue_timeout"'))).toBe(1);
});
