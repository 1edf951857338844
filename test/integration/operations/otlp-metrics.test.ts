/** Metrics that are pushed to an OpenTelemetry collector. */
import { afterEach, expect, test, vi } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream, refusingUrl } from '../../support/upstreams/http-upstream.ts';
import { type OtlpReceiver, type ReceivedMetric, startOtlpReceiver } from '../../support/upstreams/otlp-receiver.ts';

afterEach(() => vi.unstubAllEnvs());

/** Makes the next Tidegate export its metrics to this receiver. */
async function receive(env: Readonly<Record<string, string>>): Promise<OtlpReceiver> {
  const receiver = await startOtlpReceiver();
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', `${receiver.url}/v1/metrics`);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return receiver;
}

const requestsIn = (metrics: readonly ReceivedMetric[] = []) =>
  metrics.find(({ name, attributes }) => name === 'tidegate_requests_total' && attributes['outcome'] === 'forwarded');

test('exports the metrics of /metrics at the interval, and once more when it ends', async () => {
  const receiver = await receive({
    OTEL_METRIC_EXPORT_INTERVAL: '50',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
  });
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/');
  await eventually(
    () => requestsIn(receiver.metricExports.at(-1)),
    (metric) => metric?.value === 1,
  );
  const metrics = receiver.metricExports.at(-1) ?? [];
  expect(requestsIn(metrics)).toMatchObject({ kind: 'sum', attributes: { route: '/', method: 'GET', code: '200' } });
  expect(metrics).toContainEqual(
    expect.objectContaining({ name: 'tidegate_mode', kind: 'gauge', attributes: { mode: 'enforce' }, value: 1 }),
  );
  const durations = metrics.find(
    ({ name, attributes }) => name === 'tidegate_request_duration_seconds' && attributes['code_class'] === '2xx',
  );
  expect(durations).toMatchObject({ kind: 'histogram', unit: 's' });
  const value = durations?.value;
  const counts = typeof value === 'object' ? value.counts : [];
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1);
  expect(metrics.some(({ name }) => name === 'process_resident_memory_bytes')).toBe(true);
  expect(metrics[0]?.resource).toMatchObject({ 'service.name': 'tidegate', 'deployment.environment': 'test' });
  // JSON has no infinite numbers: a collector refuses an export with a null in it.
  expect(metrics.filter(({ value }) => value === null)).toEqual([]);
  expect(receiver.spans).toEqual([]);
  await send(gate.url, '/');
  await gate.drain();
  expect(requestsIn(receiver.metricExports.at(-1))?.value).toBe(2);
});

test('delays no request and no end for a collector that does not respond, and logs that', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', `${await refusingUrl()}/v1/metrics`);
  vi.stubEnv('OTEL_METRIC_EXPORT_INTERVAL', '30');
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  expect((await send(gate.url, '/')).status).toBe(200);
  const [line] = await eventually(
    () => gate.log().filter(({ msg }) => msg === 'OTLP export failed'),
    ({ length }) => length > 0,
  );
  expect(String(line?.['problem'])).toContain('metrics export');
  await gate.drain();
});

test('shows no password of the URL of a collector in the log', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', 'https://user:pass/word@host:99999/v1/metrics');
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const [line] = await eventually(
    () => gate.log().filter(({ msg }) => msg === 'OTLP export failed'),
    ({ length }) => length > 0,
  );
  expect(String(line?.['problem'])).toContain('//***@host');
  expect(JSON.stringify(gate.log())).not.toContain('pass/word');
});
