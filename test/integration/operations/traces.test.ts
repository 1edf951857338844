import { afterEach, describe, expect, test, vi } from 'vitest';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { OtlpReceiver, ReceivedSpan } from '../../support/upstreams/otlp-receiver.ts';
import { startOtlpReceiver } from '../../support/upstreams/otlp-receiver.ts';
import { pause } from '../../support/pause.ts';
import { headerOf, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const FROM_CLIENT = ['traceparent', `00-${TRACE}-${PARENT}-01`, 'tracestate', 'vendor=opaque'];

afterEach(() => vi.unstubAllEnvs());

/** Makes the next Tidegate export its traces to this receiver. */
async function trace(env: Readonly<Record<string, string>> = {}): Promise<OtlpReceiver> {
  const receiver = await startOtlpReceiver();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', receiver.url);
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '20');
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return receiver;
}

/** The spans of one request, once its server span has arrived, the last: server span first, then client spans in order. */
async function spansOf({ spans }: OtlpReceiver, requests = 1): Promise<ReceivedSpan[]> {
  const isServer = ({ kind }: ReceivedSpan) => kind === 'server';
  await eventually(
    () => spans.filter(isServer).length,
    (count) => count >= requests,
  );
  return [...spans.filter(isServer), ...spans.filter((span) => !isServer(span))];
}

describe('a trace', () => {
  test('has a span per request and per attempt; the upstream gets the attempt’s context', async () => {
    const receiver = await trace();
    const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end());
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 30ms}}}}`,
    );
    const answer = await send(gate.url, '/things?token=secret', { headers: FROM_CLIENT });
    const [server, first, second, ...more] = await spansOf(receiver);
    expect(more).toEqual([]);
    expect(server).toMatchObject({
      name: 'GET /',
      traceId: TRACE,
      parentSpanId: PARENT,
      traceState: 'vendor=opaque',
      status: 'unset',
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'http.route': '/',
        'url.path': '/things',
        'url.scheme': 'http',
        'network.protocol.version': '1.1',
        'tidegate.request_id': answer.header('tidegate-request-id'),
        'tidegate.outcome': 'recovered',
        'tidegate.upstream': 'api',
        'tidegate.attempts': 2,
      },
    });
    expect(server?.events.map(({ name }) => name)).toEqual(['tidegate.retry', 'tidegate.waited']);
    expect(server?.events[0]?.attributes).toMatchObject({
      'tidegate.reason': 'status_5xx',
      'tidegate.delay_seconds': 0.03,
    });
    const { hostname, port } = new URL(upstream.url);
    expect(first).toMatchObject({
      name: 'GET',
      kind: 'client',
      traceId: TRACE,
      parentSpanId: server?.spanId,
      status: 'error',
      attributes: {
        'http.response.status_code': 503,
        'error.type': '503',
        'server.address': hostname,
        'server.port': Number(port),
        'url.full': `${upstream.url}/things`,
      },
    });
    expect(first?.attributes).not.toHaveProperty('http.request.resend_count');
    expect(second).toMatchObject({
      parentSpanId: server?.spanId,
      status: 'unset',
      attributes: { 'http.response.status_code': 200, 'http.request.resend_count': 1 },
    });
    const contexts = upstream.hits.map(({ headers }) => [
      headerOf(headers, 'traceparent'),
      headerOf(headers, 'tracestate'),
    ]);
    expect(contexts).toEqual([
      [`00-${TRACE}-${first?.spanId}-01`, 'vendor=opaque'],
      [`00-${TRACE}-${second?.spanId}-01`, 'vendor=opaque'],
    ]);
    expect(Number(second?.startedAt)).toBeGreaterThanOrEqual(Number(first?.endedAt) + 25);
    expect(Number(server?.endedAt)).toBeGreaterThanOrEqual(Number(second?.endedAt) - 1);
    expect(JSON.stringify(receiver.spans)).not.toContain('secret');
  });

  test('starts at the proxy for a client without one, and its id is in the log', async () => {
    const receiver = await trace();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/', { headers: ['traceparent', `00-${'0'.repeat(32)}-${PARENT}-01`] });
    const [server, client] = await spansOf(receiver);
    expect(server?.parentSpanId ?? '').toBe('');
    expect(server?.traceId).not.toBe('0'.repeat(32));
    expect(headerOf(upstream.hits[0]?.headers ?? [], 'traceparent')).toBe(`00-${server?.traceId}-${client?.spanId}-01`);
    expect(gate.requests()).toMatchObject([{ trace_id: server?.traceId, span_id: server?.spanId }]);
  });

  test('shows the queue and a rejection', async () => {
    const receiver = await trace();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const limit = 'rateLimit: {initialRate: 2/s, maxRate: 2/s}, queue: {maxWait: 700ms}';
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${limit}}}`);
    await Promise.all([send(gate.url, '/'), send(gate.url, '/'), send(gate.url, '/'), send(gate.url, '/')]);
    const spans = await spansOf(receiver, 4);
    const summaries = spans
      .filter(({ kind }) => kind === 'server')
      .map(({ events, attributes }) => [attributes['tidegate.outcome'], ...events.map(({ name }) => name)].join(' '));
    expect(new Set(summaries)).toEqual(
      new Set(['forwarded', 'forwarded tidegate.decided tidegate.dequeued', 'refused tidegate.decided']),
    );
    const refused = spans.find(({ attributes }) => attributes['tidegate.outcome'] === 'refused');
    expect(refused).toMatchObject({
      status: 'unset', // a 4xx is no error of a server
      attributes: { 'http.response.status_code': 429, 'tidegate.reason': 'over_share' },
    });
  });

  test('shows an error for an upstream failure, and an end for a disconnected client', async () => {
    const receiver = await trace();
    const upstream = await startUpstream();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/', { method: 'POST', headers: ['X-Practice-Script', 'reset'], body: 'x' });
    const [failed, attempt] = await spansOf(receiver);
    expect(failed).toMatchObject({
      status: 'error',
      attributes: { 'error.type': '504', 'tidegate.outcome': 'unknown' },
    });
    expect(attempt).toMatchObject({ status: 'error', attributes: { 'error.type': 'reset' } });
    const { received } = upstream.stats();
    const isThere = () => upstream.stats().received > received;
    await sendAndLeave(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] }, isThere);
    const [, left] = await spansOf(receiver, 2);
    expect(left?.attributes).toMatchObject({ 'tidegate.outcome': 'client_gone' });
    expect(left?.attributes).not.toHaveProperty('http.response.status_code');
    expect(left?.events.map(({ name }) => name)).toContain('tidegate.gone');
  });

  test('includes requests that never reach an upstream', async () => {
    const receiver = await trace();
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}"}}\nroutes: [{path: /v1, upstream: api}]\n`,
    );
    await send(gate.url, '/v2', { headers: FROM_CLIENT });
    const [server, ...more] = await spansOf(receiver);
    expect(more).toEqual([]);
    expect(server).toMatchObject({
      ...{ name: 'GET', traceId: TRACE, parentSpanId: PARENT },
      attributes: { 'http.response.status_code': 404, 'tidegate.reason': 'no_route' },
    });
  });

  test('follows the client’s sampling decision, and propagates it', async () => {
    const receiver = await trace();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/', { headers: ['traceparent', `00-${TRACE}-${PARENT}-00`] });
    await send(gate.url, '/sampled');
    await spansOf(receiver);
    expect(receiver.spans.map(({ attributes }) => attributes['url.path'] ?? 'attempt')).toEqual([
      'attempt',
      '/sampled',
    ]);
    expect(headerOf(upstream.hits[0]?.headers ?? [], 'traceparent')).toMatch(
      new RegExp(`^00-${TRACE}-(?!${PARENT}).*-00$`),
    );
    expect(gate.requests()[0]?.['trace_id']).toBe(TRACE);
  });

  test('is exported to the last span when the proxy drains', async () => {
    const receiver = await trace({ OTEL_BSP_SCHEDULE_DELAY: '60000' });
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/');
    expect(receiver.spans).toEqual([]);
    await gate.drain(0);
    expect(receiver.spans).toHaveLength(2);
  });

  test('that cannot be exported delays no request', async () => {
    const receiver = await trace({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
    });
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    expect((await send(gate.url, '/')).status).toBe(200);
    const since = performance.now();
    await gate.drain(0);
    expect(performance.now() - since).toBeLessThan(30_000); // of the exporter's 60 s
    expect(receiver.spans).toEqual([]);
  });

  test('that cannot be exported is logged once', async () => {
    await trace({ OTEL_EXPORTER_OTLP_ENDPOINT: await refusingUrl(), OTEL_EXPORTER_OTLP_TIMEOUT: '200' });
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const exportFailures = () => gate.log().filter(({ msg }) => msg === 'OTLP export failed');
    await send(gate.url, '/');
    await eventually(exportFailures, ({ length }) => length > 0);
    await send(gate.url, '/');
    await pause(600);
    expect(exportFailures()).toMatchObject([
      { level: 'warn', problem: expect.stringMatching(/^connect ECONNREFUSED [\d.:]+$/) as unknown },
    ]);
  });
});

describe('OpenTelemetry’s variables', () => {
  test('set the service, its attributes, the sampler and the collector’s headers', async () => {
    const receiver = await trace({
      OTEL_SERVICE_NAME: 'payments-gate',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
      OTEL_TRACES_SAMPLER: 'always_on',
    });
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    // The sampler ignores the client's decision.
    await send(gate.url, '/', { headers: ['traceparent', `00-${TRACE}-${PARENT}-00`] });
    const [server] = await spansOf(receiver);
    expect(server?.resource).toMatchObject({
      'service.name': 'payments-gate',
      'service.version': 'test',
      'deployment.environment.name': 'test',
    });
    expect(server?.resource['service.instance.id']).toMatch(/^[0-9a-f]{8}$/);
    expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-tenant': 'blue' } });
  });

  test.each([
    ['OTEL_SDK_DISABLED', 'true'],
    ['OTEL_TRACES_EXPORTER', 'none'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', ''],
  ])('%s=%s disables tracing, and forwards the client’s context unchanged', async (name, value) => {
    const receiver = await trace({ [name]: value });
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/', { headers: FROM_CLIENT });
    await send(gate.url, '/', { headers: ['traceparent', 'nonsense'] });
    await gate.drain(0);
    expect(receiver.requests).toEqual([]);
    const [first = [], second = []] = upstream.hits.map(({ headers }) => headers);
    expect(headerOf(first, 'traceparent')).toBe(`00-${TRACE}-${PARENT}-01`);
    expect(headerOf(first, 'tracestate')).toBe('vendor=opaque');
    expect(headerOf(second, 'traceparent')).toBe('nonsense');
    expect(gate.requests().map((line) => line['trace_id'])).toEqual([TRACE, undefined]);
    expect(gate.requests().map((line) => line['span_id'])).toEqual([PARENT, undefined]);
  });
});
