import { describe, expect, test } from 'vitest';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';

function parse(text: string): LoggedRequest | 'none' | 'aside' {
  const format = chooseLogFormat(text);
  if ('message' in format) throw new Error(format.message);
  return format.parse(text, 7);
}

/** The fields that an access log gives, with the arrival in ISO 8601. */
function read(text: string): unknown {
  const logged = parse(text);
  if (typeof logged === 'string') return logged;
  const { at, line, client, end, attempts, upstream, method, path, took, service } = logged;
  const round = (time: number | undefined): number | undefined => (time === undefined ? undefined : Math.round(time));
  expect(line).toBe(7);
  return {
    at: new Date(Math.round(at)).toISOString(),
    client,
    end,
    last: attempts?.last,
    upstream,
    method,
    path,
    took: round(took),
    service: round(service),
  };
}

// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
describe('a line of nginx', () => {
  const COMBINED =
    '203.0.113.7 - alice [22/Nov/2026:10:00:01 +0100] "POST /v1/charges?x=1 HTTP/1.1" 200 612 "-" "curl/8.9 \\x22q\\x22"';

  test('in the combined format with $request_time is read, and its start is that much before its end', () => {
    expect(read(`${COMBINED} 0.250`)).toEqual({
      at: '2026-11-22T09:00:00.750Z',
      client: '203.0.113.7',
      end: 'served',
      last: 'passed',
      upstream: '',
      method: 'POST',
      path: '/v1/charges',
      took: 250,
      service: 250,
    });
  });

  test('has its end in milliseconds with $msec, and the time of the upstream', () => {
    expect(read(`${COMBINED} 0.250 0.240 1795338001.125`)).toMatchObject({
      at: '2026-11-22T09:00:00.875Z',
      took: 250,
      service: 240,
    });
    expect(read(`${COMBINED} rt=0.250 uct="0.001" uht="0.2" urt="0.240" msec=1795338001.125`)).toMatchObject({
      at: '2026-11-22T09:00:00.750Z',
      took: 250,
      service: 240,
    });
  });

  test('has no time of the upstream if nginx retried the request', () => {
    expect(read(`${COMBINED} 0.250 0.100, 0.150 1795338001.125`)).toMatchObject({
      at: '2026-11-22T09:00:00.875Z',
      took: 250,
      service: undefined,
    });
  });

  test('without times, or in the common format, is read without a duration', () => {
    expect(read(COMBINED)).toMatchObject({ at: '2026-11-22T09:00:01.000Z', took: undefined, service: undefined });
    expect(read('::1 - - [22/Nov/2026:10:00:01 +0000] "GET / HTTP/1.0" 429 0')).toMatchObject({
      client: '::1',
      end: 'refused',
      last: 'refused',
    });
  });

  test('with 503, the default of limit_req, is a rejection; with 502 a failure; with 499 a client that left', () => {
    const withStatus = (status: number): unknown => read(`${COMBINED.replace(' 200 ', ` ${status} `)} 0.001 - -`);
    expect(withStatus(503)).toMatchObject({ end: 'refused', last: 'refused' });
    expect(withStatus(502)).toMatchObject({ end: 'failed', last: 'failed' });
    expect(withStatus(499)).toMatchObject({ end: 'gone', last: 'unheard' });
  });

  test('that is no request is skipped, with what is expected', () => {
    const format = chooseLogFormat(COMBINED);
    if ('message' in format) throw new Error(format.message);
    expect(format.parse('2026/11/22 10:00:00 [error] 7#7: *1 connect() failed', 1)).toBe('none');
    expect(format.describeProblem('2026/11/22 10:00:00 [error] 7#7: *1 connect() failed')).toMatch(
      /^is '2026\/11\/22 .*': expected nginx's combined format, .*\$msec/,
    );
  });
});

// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
describe('a line of Envoy', () => {
  const TEXT =
    '[2026-11-22T10:00:00.310Z] "POST /api/v1/locations?q=1 HTTP/2" 204 - 154 0 226 100 "10.0.35.28, 10.0.0.1" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"';

  test('in the default format has its start, and the time of the upstream', () => {
    expect(read(TEXT)).toEqual({
      at: '2026-11-22T10:00:00.310Z',
      client: '10.0.35.28',
      end: 'served',
      last: 'passed',
      upstream: '',
      method: 'POST',
      path: '/api/v1/locations',
      took: 226,
      service: 100,
    });
  });

  test('with 503 is a rejection by a circuit breaker or the service, and a failure without a connection', () => {
    const withFlags = (flags: string): unknown => read(TEXT.replace('204 -', `503 ${flags}`));
    expect(withFlags('UO')).toMatchObject({ end: 'refused' });
    expect(withFlags('-')).toMatchObject({ end: 'refused' });
    expect(withFlags('UF,URX')).toMatchObject({ end: 'failed', last: 'failed' });
    expect(withFlags('UH')).toMatchObject({ end: 'failed' });
    expect(read(TEXT.replace('204 -', '429 RL'))).toMatchObject({ end: 'refused' });
    expect(read(TEXT.replace('204 -', '0 DC'))).toMatchObject({ end: 'gone' });
  });

  test('in JSON has the same', () => {
    const fields = {
      start_time: '2026-11-22T10:00:00.310Z',
      method: 'POST',
      path: '/api?q=1',
      response_code: 429,
      response_flags: 'RL',
      duration: 3,
      downstream_remote_address: '[2001:db8::1]:41012',
      upstream_cluster: 'payments',
      x_forwarded_for: null,
    };
    expect(read(JSON.stringify(fields))).toEqual({
      at: '2026-11-22T10:00:00.310Z',
      client: '2001:db8::1',
      end: 'refused',
      last: 'refused',
      upstream: 'payments',
      method: 'POST',
      path: '/api',
      took: 3,
      service: 3,
    });
    expect(read(JSON.stringify({ ...fields, response_code: '200', duration: '226' }))).toMatchObject({
      end: 'served',
      took: 226,
    });
  });
});

// https://caddyserver.com/docs/logging#structured-logs
describe('a line of Caddy', () => {
  const FIELDS = {
    level: 'info',
    ts: 1795341600.5,
    logger: 'http.log.access',
    msg: 'handled request',
    request: {
      remote_ip: '203.0.113.7',
      remote_port: '41342',
      client_ip: '198.51.100.4',
      proto: 'HTTP/2.0',
      method: 'GET',
      host: 'localhost',
      uri: '/index.html?a=b',
      headers: { 'User-Agent': ['curl/8.9'] },
    },
    bytes_read: 0,
    user_id: '',
    duration: 0.25,
    size: 10900,
    status: 200,
  };

  test('has its end and its duration in seconds', () => {
    expect(read(JSON.stringify(FIELDS))).toEqual({
      at: '2026-11-22T10:00:00.250Z',
      client: '198.51.100.4',
      end: 'served',
      last: 'passed',
      upstream: '',
      method: 'GET',
      path: '/index.html',
      took: 250,
      service: 250,
    });
  });

  test('may have another layout of the time and of the duration', () => {
    const other = { ...FIELDS, ts: '2026/11/22 10:00:00.500', duration: '1.5ms', status: 503 };
    expect(read(JSON.stringify(other))).toMatchObject({ at: '2026-11-22T10:00:00.499Z', took: 2, end: 'refused' });
    expect(read(JSON.stringify({ ...FIELDS, ts: '2026-11-22T10:00:00.500Z', duration: '1m2.5s' }))).toMatchObject({
      at: '2026-11-22T09:58:58.000Z',
    });
  });

  test('of another logger is skipped', () => {
    expect(parse('{"level":"info","ts":1795341600.5,"msg":"serving initial configuration"}')).toBe('none');
  });
});

// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html#access-log-entry-examples
describe('an entry of an Application Load Balancer', () => {
  const ENTRY =
    'https 2026-11-22T10:00:00.386641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/charges?x=1 HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2026-11-22T10:00:00.215000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"';

  test('has the time that the request came, and the time of the target', () => {
    expect(read(ENTRY)).toEqual({
      at: '2026-11-22T10:00:00.215Z',
      client: '192.168.131.39',
      end: 'served',
      last: 'passed',
      upstream: '',
      method: 'GET',
      path: '/charges',
      took: 171,
      service: 48,
    });
  });

  test('with 503 is a rejection by the target, and a failure without a target', () => {
    expect(read(ENTRY.replace(' 200 200 ', ' 503 503 '))).toMatchObject({ end: 'refused' });
    expect(read(ENTRY.replace('10.0.0.1:80 0.086 0.048 0.037 200 200', '- -1 -1 -1 503 -'))).toMatchObject({
      end: 'failed',
      took: 171,
    });
    expect(read(ENTRY.replace(' 200 200 ', ' 460 - '))).toMatchObject({ end: 'gone' });
  });
});
