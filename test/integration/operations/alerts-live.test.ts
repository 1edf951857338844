/** The alerts in a real Prometheus that scrapes the real proxy, one event at a time. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates, makePem } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import { type Prometheus, startPrometheus } from '../../support/programs/prometheus.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const RULES = fileURLToPath(new URL('../../../docker/prometheus/tidegate.rules.yml', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tidegate-alerts-'));
const certificates = makeCertificates();

/** One for each test. */
const JOBS = [
  'running',
  'started',
  'reloaded',
  'certain',
  'dead',
  'dead-at-start',
  'errors',
  'refused',
  'ejected',
  'down',
  'workers',
  'certificate',
  'expiry',
  'upstream-certificate',
  'storm',
];

let prometheus: Prometheus;
beforeAll(async () => {
  // The same expressions, without the time for which they have to hold.
  const rules = join(folder, 'rules.yml');
  writeFileSync(rules, readFileSync(RULES, 'utf8').replaceAll(/^ +for: .*\n/gm, ''));
  prometheus = await startPrometheus(JOBS, [rules]);
});
afterAll(async () => {
  await prometheus.close();
  rmSync(folder, { recursive: true });
  certificates.remove();
});

/** The alerts that fire for the job, except those of a late event loop, which other work on the machine delays. */
async function firing(job: string): Promise<string[]> {
  const ofMachine = 'alertname!="TidegateEventLoopLag",bound!="event_loop"';
  const alerts = await prometheus.query(`ALERTS{alertstate="firing",job="${job}",${ofMachine}}`);
  return [...new Set(alerts.map(({ labels }) => labels['alertname'] ?? ''))].toSorted();
}

/** Resolves when exactly these alerts fire for the job. */
function fires(job: string, ...names: string[]): Promise<string[]> {
  return prometheus.eventually(
    () => firing(job),
    (now) => names.every((name) => now.includes(name)),
  );
}

/** Resolves when the job has been scraped twice. */
async function scraped(job: string): Promise<void> {
  await prometheus.eventually(
    () => prometheus.query(`count_over_time(tidegate_build_info{job="${job}"}[1m])`),
    ([sample]) => (sample?.value ?? 0) >= 2,
  );
}

const FAILING = (url: string) => `
upstreams: {api: {url: "${url}", retry: {attempts: 1}, rateLimit: {minRate: 1000/s}}}
`;

describe('TidegateWritesUnknown fires for the first unknown write', () => {
  test('of a process that has been scraped before', async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(500).end());
    const gate = await startTidegate(FAILING(upstream.url));
    prometheus.watch('running', gate.adminUrl);
    await scraped('running');
    expect(await firing('running')).toEqual([]);
    await send(gate.url, '/', { method: 'POST', body: '{}' });
    expect(await fires('running', 'TidegateWritesUnknown')).toEqual(['TidegateWritesUnknown']);
  });

  test('of a process before its first scrape', async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(500).end());
    const gate = await startTidegate(FAILING(upstream.url));
    await send(gate.url, '/', { method: 'POST', body: '{}' });
    prometheus.watch('started', gate.adminUrl);
    expect(await fires('started', 'TidegateWritesUnknown')).toEqual(['TidegateWritesUnknown']);
  });

  test('of a route that a reload has added', async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(500).end());
    const gate = await startTidegate(`${FAILING(upstream.url)}routes: [{path: /old, upstream: api}]`);
    prometheus.watch('reloaded', gate.adminUrl);
    await scraped('reloaded');
    await gate.rewrite(`${FAILING(upstream.url)}routes: [{path: /old, upstream: api}, {path: /new, upstream: api}]`);
    await send(gate.url, '/new', { method: 'POST', body: '{}' });
    await fires('reloaded', 'TidegateWritesUnknown');
    const [alert] = await prometheus.query('ALERTS{alertname="TidegateWritesUnknown",job="reloaded"}');
    expect(alert?.labels).toMatchObject({ route: '/new' });
  });

  test('and not for a write that certainly failed', async () => {
    const gate = await startTidegate(FAILING(await refusingUrl()));
    prometheus.watch('certain', gate.adminUrl);
    await scraped('certain');
    await send(gate.url, '/', { method: 'POST', body: '{}' });
    expect(await prometheus.unmet('certain', ['request_outcomes_total{outcome="upstream_error"} == 1'])).toEqual([]);
    expect(await firing('certain')).not.toContain('TidegateWritesUnknown');
  });
});

describe('TidegateDeliveriesDead fires for the first dead delivery, and no attempt raises TidegateWritesUnknown', () => {
  /** Two attempts, whose outcome is unknown. */
  const startDelivering = async () => {
    const upstream = await startHttpUpstream((_, response) => response.writeHead(500).end());
    const state = mkdtempSync(join(tmpdir(), 'tidegate-alerts-'));
    onTestFinished(() => rmSync(state, { recursive: true }));
    const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(state, 'state.db')}, durability: normal}
${FAILING(upstream.url)}
routes: [{path: /hooks, upstream: api, deliver: {schedule: {delays: [1s]}}}]
`);
    const notify = () => send(gate.url, '/hooks', { method: 'POST', body: '{}' });
    return { gate, notify };
  };
  const ONLY_ATTEMPTS = [
    'delivery_attempts_total{route="/hooks",result="status_500"} == 2',
    'request_outcomes_total{route="/hooks",outcome="unknown"} == 0',
    'responses_total{route="/hooks",code_class="5xx"} == 0',
  ];

  test('of a process that has been scraped before', async () => {
    const { gate, notify } = await startDelivering();
    prometheus.watch('dead', gate.adminUrl);
    await scraped('dead');
    expect(await firing('dead')).toEqual([]);
    expect((await notify()).status).toBe(202);
    expect(await fires('dead', 'TidegateDeliveriesDead')).toEqual(['TidegateDeliveriesDead']);
    expect(await prometheus.unmet('dead', ONLY_ATTEMPTS)).toEqual([]);
  });

  test('of a process before its first scrape', async () => {
    const { gate, notify } = await startDelivering();
    expect((await notify()).status).toBe(202);
    await eventually(
      () => gate.metric('tidegate_deliveries_total{route="/hooks",event="dead"}'),
      (dead) => dead === 1,
    );
    prometheus.watch('dead-at-start', gate.adminUrl);
    expect(await fires('dead-at-start', 'TidegateDeliveriesDead')).toEqual(['TidegateDeliveriesDead']);
    expect(await prometheus.unmet('dead-at-start', ONLY_ATTEMPTS)).toEqual([]);
  });
});

test('TidegateServerErrors fires when clients receive 5xx', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n % 4 === 0 ? 500 : 200).end());
  const gate = await startTidegate(FAILING(upstream.url));
  prometheus.watch('errors', gate.adminUrl);
  await scraped('errors');
  for (let i = 0; i < 60; i += 1) await send(gate.url, '/', {});
  expect(await fires('errors', 'TidegateServerErrors')).toEqual(['TidegateServerErrors']);
});

test('TidegateRequestsRefused fires when clients are refused', async () => {
  const upstream = await startHttpUpstream((_, response) => response.writeHead(200).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 10ms}}}
`);
  prometheus.watch('refused', gate.adminUrl);
  await scraped('refused');
  for (let i = 0; i < 60; i += 1) await send(gate.url, '/', {});
  expect(await fires('refused', 'TidegateRequestsRefused')).toContain('TidegateRequestsRefused');
});

test('TidegateEndpointEjected names the ejected endpoint', async () => {
  const upstream = await startHttpUpstream((_, response) => response.writeHead(200).end());
  const gate = await startTidegate(`
upstreams:
  api: {urls: ["${upstream.url}", "${await refusingUrl()}"], outlierDetection: {consecutiveGatewayErrors: 1}}
`);
  prometheus.watch('ejected', gate.adminUrl);
  for (let i = 0; i < 4; i += 1) await send(gate.url, '/', {});
  expect(await fires('ejected', 'TidegateEndpointEjected')).toContain('TidegateEndpointEjected');
});

test('TidegateDown fires when a process has ended', async () => {
  const gate = await startTidegate(FAILING(await refusingUrl()));
  prometheus.watch('down', gate.adminUrl);
  await scraped('down');
  expect(await firing('down')).toEqual([]);
  await gate.close();
  expect(await fires('down', 'TidegateDown')).toContain('TidegateDown');
});

test('TidegateWorkerRestarted fires when a worker has been replaced', async () => {
  const workers = await startWorkers(`workers: 2\n${FAILING(await refusingUrl())}`);
  prometheus.watch('workers', workers.adminUrl);
  await scraped('workers');
  expect(await firing('workers')).toEqual([]);
  const [pid] = await eventually(
    () => workers.pids(),
    (pids) => pids.length === 2,
  );
  process.kill(pid ?? 0, 'SIGKILL');
  expect(await fires('workers', 'TidegateWorkerRestarted')).toContain('TidegateWorkerRestarted');
});

test('TidegateCertificateExpires names the setting of a certificate that expires within a week', async () => {
  certificates.selfSign('short');
  certificates.selfSign('long', '-days', '30');
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${certificates.path('long.crt')}, key: ${certificates.path('long.key')}}}
upstreams:
  api: {url: "https://127.0.0.1:1", tls: {cert: ${certificates.path('short.crt')}, key: ${certificates.path('short.key')}}}
`);
  prometheus.watch('certificate', gate.adminUrl);
  await fires('certificate', 'TidegateCertificateExpires');
  const alerts = await prometheus.query('ALERTS{alertname="TidegateCertificateExpires",job="certificate"}');
  expect(alerts.map(({ labels }) => labels['setting'])).toEqual(['upstreams.api.tls.cert']);
});

test('TidegateCertificateExpired replaces TidegateCertificateExpires, and ends when the certificate is replaced', async () => {
  const file = join(folder, 'expires.pem');
  writeFileSync(file, makePem(new Date(Date.now() + 8000)));
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${file}, key: ${file}}}
upstreams: {api: {url: "http://127.0.0.1:1"}}
`);
  prometheus.watch('expiry', gate.adminUrl);
  const firingNow = async () => (await firing('expiry')).filter((name) => name.startsWith('TidegateCertificate'));
  const becomes = (...names: string[]) =>
    prometheus.eventually(firingNow, (now) => JSON.stringify(now) === JSON.stringify(names));
  expect(await becomes('TidegateCertificateExpires')).toHaveLength(1);
  expect(await becomes('TidegateCertificateExpired')).toHaveLength(1);
  writeFileSync(file, makePem());
  expect(await becomes()).toEqual([]);
});

test('TidegateUpstreamCertificateRejected names the upstream whose certificate has expired, and the cause', async () => {
  certificates.issueExpired('expired', 'IP:127.0.0.1');
  const key = certificates.read('expired.key');
  const cert = certificates.read('expired.crt');
  const server = createServer({ key, cert }, (_, response) => response.end()).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const gate = await startTidegate(`
upstreams:
  api: {url: "https://127.0.0.1:${port}", tls: {ca: ${certificates.path('ca.crt')}}}
  down: {url: "${await refusingUrl()}"}
routes: [{path: /down, upstream: down}, {path: /, upstream: api}]
`);
  prometheus.watch('upstream-certificate', gate.adminUrl);
  await scraped('upstream-certificate');
  await send(gate.url, '/down');
  await send(gate.url, '/');
  await fires('upstream-certificate', 'TidegateUpstreamCertificateRejected');
  const alerts = await prometheus.query(
    'ALERTS{alertname="TidegateUpstreamCertificateRejected",job="upstream-certificate"}',
  );
  expect(alerts.map(({ labels }) => [labels['upstream'], labels['cause'], labels['severity']])).toEqual([
    ['api', 'certificate_expired', 'critical'],
  ]);
});

test('TidegateClientRefused names the client that is refused, and TidegateClientOverShare reports its cut allowance', async () => {
  const upstream = await startHttpUpstream((_, response) => response.writeHead(200).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 10/s, maxRate: 10/s}, queue: {maxWait: 10ms}}}
clients: {key: [header:x-api-key, ip], names: {batch: [batch-job], shop: [shop-front]}}
`);
  prometheus.watch('storm', gate.adminUrl);
  await scraped('storm');
  const call = (key: string) => void send(gate.url, '/', { headers: ['X-Api-Key', key] }).catch(() => undefined);
  const storm = setInterval(() => call('batch-job'), 10);
  const calm = setInterval(() => call('shop-front'), 1000);
  onTestFinished(() => {
    clearInterval(storm);
    clearInterval(calm);
  });
  await fires('storm', 'TidegateClientRefused', 'TidegateClientOverShare');
  const alerts = await prometheus.query('ALERTS{alertname="TidegateClientRefused",job="storm"}');
  expect(alerts.map(({ labels }) => labels['client'])).toEqual(['batch']);
});
