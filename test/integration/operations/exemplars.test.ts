import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Exemplars, type Prometheus, startPrometheus } from '../../support/programs/prometheus.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const REQUESTS = 'tidegate_request_duration_seconds_bucket';
const ATTEMPTS = 'tidegate_upstream_attempt_duration_seconds_bucket';

let prometheus: Prometheus;
beforeAll(async () => {
  prometheus = await startPrometheus(['exemplars', 'workers']);
});
afterAll(() => prometheus.close());

function idsOf(exemplars: Exemplars): string[] {
  return exemplars.flatMap((series) => series.exemplars.map(({ labels }) => labels['request_id'] ?? ''));
}

test('links a slow bucket, for requests and attempts, to the log line of a request', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 1ms}}}}
`);
  prometheus.watch('exemplars', gate.adminUrl);
  for (let i = 0; i < 5; i += 1) await send(gate.url, '/');
  const script = ['X-Practice-Id', 'slow', 'X-Practice-Script', '503; delay=150, 200; delay=300'];
  const slow = (await send(gate.url, '/', { headers: script })).header('tidegate-request-id');
  const [request] = await prometheus.eventually(
    // On a busy machine, it may take longer than half a second.
    async () =>
      (await prometheus.exemplars(`${REQUESTS}{job="exemplars"}`)).filter((each) => idsOf([each]).includes(slow ?? '')),
    ({ length }) => length > 0,
  );
  expect(request?.seriesLabels).toMatchObject({ route: '/', code_class: '2xx' });
  expect(Number(request?.seriesLabels['le'])).toBeGreaterThanOrEqual(0.5);
  expect(request?.exemplars.map(({ labels }) => labels)).toEqual([{ request_id: slow }]);
  expect(Number(request?.exemplars[0]?.value)).toBeGreaterThanOrEqual(0.45);
  expect(Math.abs(Date.now() / 1000 - (request?.exemplars[0]?.timestamp ?? 0))).toBeLessThan(60);
  expect(gate.requests().filter(({ id }) => id === slow)).toMatchObject([{ attempts: 2, status: 200 }]);

  const [failed] = await prometheus.exemplars(`${ATTEMPTS}{job="exemplars",code_class="5xx"}`);
  expect(failed?.exemplars.map(({ labels }) => labels)).toEqual([{ request_id: slow }]);
});

test('finds the requests of each of several workers', async () => {
  const upstream = await startUpstream();
  const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}\n`);
  prometheus.watch('workers', gate.adminUrl);
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(gate.url, '/')));
  const ids = answers.map(({ header }) => header('tidegate-request-id'));
  const seen = await prometheus.eventually(
    async () => idsOf(await prometheus.exemplars(`${REQUESTS}{job="workers"}`)),
    ({ length }) => length > 0,
  );
  for (const id of seen) expect(ids).toContain(id);
});

test('sends no exemplars, and what promtool accepts, without OpenMetrics', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/');
  const scrape = async (accept: string) => {
    const answer = await fetch(`${gate.adminUrl}/metrics`, { headers: { accept } });
    return { type: answer.headers.get('content-type'), vary: answer.headers.get('vary'), text: await answer.text() };
  };
  const open = await scrape('application/openmetrics-text; version=1.0.0');
  expect(open.type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(open.vary).toBe('Accept');
  expect(open.text).toMatch(/ # \{request_id="[\w-]+"\} [\d.e-]+ [\d.]+\n/);
  expect(open.text).toMatch(/\n# EOF\n$/);
  const classic = await scrape('*/*');
  expect(classic.type).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(classic.text).not.toContain('request_id');
  expect(classic.text).toContain('\ntidegate_requests_total{');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: classic.text,
    encoding: 'utf8',
  });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
});
