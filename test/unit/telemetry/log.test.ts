import { describe, expect, test } from 'vitest';
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';
import { logDeliveries } from '../../../src/telemetry/log/delivery-log.ts';
import { logRareEvents } from '../../../src/telemetry/log/event-log.ts';
import { createLogger, flushLogger, type LogLevel } from '../../../src/telemetry/log/logger.ts';
import { logRequests } from '../../../src/telemetry/log/request-log.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import type { LimitState } from '../../../src/core/limits/limit-state.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

function openLog(level: LogLevel = 'info') {
  const written: string[] = [];
  const logger = createLogger({ level, destination: { write: (line) => void written.push(line) } });
  return { logger, written, lines: () => written.map((line): unknown => ({ ...JSON.parse(line), time: undefined })) };
}

const RECORD: RequestRecord = {
  id: '01HX',
  at: 0,
  route: '/v1',
  upstream: 'payments',
  method: 'POST',
  path: '/v1/charges',
  client: 'c0ffee',
  status: 200,
  outcome: 'recovered',
  reason: undefined,
  attempts: 2,
  queueTime: 12.34,
  sleepTime: 100.06,
  timeToHead: 200,
  took: 240.04,
  retryAfterSeconds: undefined,
  isTruncated: false,
};

function done(fields: Partial<RequestRecord> = {}): ProxyEvent {
  return { type: 'done', record: { ...RECORD, ...fields } };
}

describe('a request', () => {
  test('is logged as one line', () => {
    const { logger, lines } = openLog();
    const listen = logRequests(logger, () => 1);
    listen({ type: 'arrived', route: '/v1' });
    listen(done());
    expect(lines()).toEqual([
      {
        level: 'info',
        id: '01HX',
        route: '/v1',
        upstream: 'payments',
        method: 'POST',
        path: '/v1/charges',
        client: 'c0ffee',
        status: 200,
        outcome: 'recovered',
        attempts: 2,
        queuedMs: 12.3,
        sleptMs: 100.1,
        ms: 240,
        msg: 'request',
      },
    ]);
  });

  test('that was refused has the reason and the end of the refusal', () => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 1)(done({ outcome: 'refused', reason: 'over_share', status: 429, retryAfterSeconds: 3 }));
    expect(lines()).toMatchObject([
      { level: 'info', status: 429, outcome: 'refused', reason: 'over_share', retryAfter: 3 },
    ]);
  });

  test.each([
    [{ outcome: 'forwarded' }, 'info'],
    [{ outcome: 'refused' }, 'info'],
    [{ outcome: 'queue_timeout' }, 'info'],
    [{ outcome: 'client_gone' }, 'info'],
    [{ outcome: 'upstream_error' }, 'warn'],
    [{ outcome: 'unknown' }, 'warn'],
    [{ outcome: 'forwarded', isTruncated: true }, 'warn'],
    [{ outcome: 'client_gone', isAbandonedWrite: true }, 'warn'],
  ] as const)('that ends with %j is logged at the level %s', (fields, level) => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 1)(done(fields));
    expect(lines()).toMatchObject([{ level }]);
  });

  test('that succeeded at the first attempt is sampled as configured, and any other is always logged', () => {
    const { logger, lines } = openLog();
    const listen = logRequests(logger, () => 0.25);
    for (let i = 0; i < 100; i += 1) listen(done({ outcome: 'forwarded', attempts: 1, id: `${i}` }));
    expect(lines()).toHaveLength(25);
    const others = [
      { outcome: 'recovered' },
      { outcome: 'refused', status: 429 },
      { outcome: 'forwarded', status: 404 },
      { outcome: 'forwarded', isTruncated: true },
      { outcome: 'client_gone' },
    ] as const;
    for (const fields of others) listen(done(fields));
    expect(lines().slice(25)).toMatchObject(others.map(({ outcome }) => ({ outcome })));
  });

  test('that succeeded is not logged if that is off', () => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 0)(done({ outcome: 'forwarded', attempts: 1 }));
    expect(lines()).toEqual([]);
  });

  test('is logged without a query, even if its record has one', () => {
    const { logger, written } = openLog();
    logRequests(logger, () => 1)(done({ path: '/v1/charges?key=sk_live_1' }));
    expect(written.join()).toContain('"path":"/v1/charges"');
    expect(written.join()).not.toContain('sk_live_1');
  });
});

describe('changes', () => {
  const changes: readonly ProxyEvent[] = [
    { type: 'limit-state', upstream: 'payments', scope: 'upstream', from: 'open', to: 'backoff', rate: 41.237 },
    { type: 'limit-state', upstream: 'payments', scope: 'upstream', from: 'backoff', to: 'blocked', rate: 0 },
    { type: 'limit-state', upstream: 'payments', scope: 'client', from: 'open', to: 'blocked', rate: 0 },
    { type: 'cut', upstream: 'payments', scope: 'upstream', cause: 'first', from: Infinity, to: 40 },
    { type: 'cut', upstream: 'payments', scope: 'upstream', cause: 'blocked', from: 40, to: Infinity },
    { type: 'client-state', upstream: 'payments', client: 'c0ffee', from: 'normal', to: 'backoff' },
    { type: 'client-cut', upstream: 'payments', client: 'c0ffee', allowance: 0.5 },
  ];

  test("of an upstream's limit are logged at info, its blocks at warn", () => {
    const { logger, lines } = openLog('info');
    for (const event of changes) logRareEvents(logger)(event);
    expect(lines()).toEqual([
      {
        level: 'info',
        upstream: 'payments',
        scope: 'upstream',
        from: 'open',
        to: 'backoff',
        rate: 41.2,
        msg: 'limit changed state',
      },
      {
        level: 'warn',
        upstream: 'payments',
        scope: 'upstream',
        from: 'backoff',
        to: 'blocked',
        msg: 'limit changed state',
      },
    ]);
  });

  test('of a limit that is used up are logged at info only if the rate has doubled or halved since the last line', () => {
    const { logger, lines } = openLog('info');
    const listen = logRareEvents(logger);
    const change = (upstream: string, from: LimitState, to: LimitState, rate: number): void =>
      listen({ type: 'limit-state', upstream, scope: 'upstream', from, to, rate });
    change('till', 'open', 'backoff', 20);
    for (let cycle = 0; cycle < 12; cycle += 1) {
      change('till', 'backoff', 'cooldown', 19);
      change('till', 'cooldown', 'restoring', 18);
      change('till', 'restoring', 'backoff', 14);
    }
    change('payments', 'open', 'backoff', 400);
    change('till', 'backoff', 'cooldown', 10);
    change('till', 'cooldown', 'restoring', 19.9);
    change('till', 'restoring', 'backoff', 20);
    change('till', 'backoff', 'blocked', 0);
    change('till', 'blocked', 'restoring', 20);
    change('till', 'restoring', 'open', Infinity);
    expect(lines()).toMatchObject([
      { level: 'info', upstream: 'till', from: 'open', to: 'backoff', rate: 20 },
      { level: 'info', upstream: 'payments', rate: 400 },
      { level: 'info', upstream: 'till', from: 'backoff', to: 'cooldown', rate: 10 },
      { level: 'info', upstream: 'till', from: 'restoring', to: 'backoff', rate: 20 },
      { level: 'warn', upstream: 'till', to: 'blocked' },
      { level: 'info', upstream: 'till', from: 'blocked', to: 'restoring', rate: 20 },
      { level: 'info', upstream: 'till', from: 'restoring', to: 'open' },
    ]);
    expect(lines().at(-1)).not.toHaveProperty('rate');
  });

  test('of clients, and cuts, are logged at debug', () => {
    const { logger, lines } = openLog('debug');
    for (const event of changes) logRareEvents(logger)(event);
    expect(lines().slice(2)).toEqual([
      {
        level: 'debug',
        upstream: 'payments',
        scope: 'client',
        from: 'open',
        to: 'blocked',
        msg: 'limit changed state',
      },
      { level: 'debug', upstream: 'payments', scope: 'upstream', cause: 'first', to: 40, msg: 'rate cut' },
      { level: 'debug', upstream: 'payments', scope: 'upstream', cause: 'blocked', from: 40, msg: 'rate cut' },
      {
        level: 'debug',
        upstream: 'payments',
        client: 'c0ffee',
        from: 'normal',
        to: 'backoff',
        msg: 'client changed state',
      },
      { level: 'debug', upstream: 'payments', client: 'c0ffee', allowance: 0.5, msg: 'client allowance cut' },
    ]);
  });
});

describe('the end of a delivery', () => {
  const ended = (event: DeliveryEnd, attempts = 3): ProxyEvent => ({
    ...{ type: 'delivery', route: '/hooks', event, age: 90_000.4 },
    ended: { id: '01a2', upstream: 'shop', attempts, status: 503, reason: 'status_503' },
  });

  test.each([
    { event: 'delivered', level: 'info' },
    { event: 'canceled', level: 'info' },
    { event: 'dead', level: 'error' },
    { event: 'unknown', level: 'error' },
  ] as const)('is logged at $level if it is $event', ({ event, level }) => {
    const { logger, lines } = openLog();
    logDeliveries(logger, () => 1)(ended(event));
    const facts = { delivery: '01a2', route: '/hooks', upstream: 'shop', outcome: event };
    const attempt = { attempts: 3, status: 503, reason: 'status_503', ms: 90_000 };
    expect(lines()).toEqual([{ level, ...facts, ...attempt, msg: 'delivery ended' }]);
  });

  test('has no line while it goes on, and one for a share of those delivered', () => {
    const { logger, lines } = openLog();
    const listen = logDeliveries(logger, () => 0.5);
    listen({ type: 'delivery', route: '/hooks', event: 'accepted' });
    for (let attempts = 1; attempts <= 4; attempts += 1) listen(ended('delivered', attempts));
    for (let attempts = 5; attempts <= 6; attempts += 1) listen(ended('dead', attempts));
    expect(lines().map((line) => (line as { attempts: number }).attempts)).toEqual([2, 4, 5, 6]);
  });
});

test('an unreachable store is logged once, and once again when it responds', () => {
  const { logger, lines } = openLog();
  const listen = logRareEvents(logger);
  const change = (isDegraded: boolean, cause?: string): void =>
    listen({ type: 'store-degraded', store: 'redis', isDegraded, cause });
  change(false);
  change(true, 'ECONNREFUSED');
  change(true, 'timeout');
  change(false);
  change(true, 'timeout');
  const down = 'shared store not responding: this process keeps limits on its own';
  expect(lines()).toEqual([
    { level: 'warn', store: 'redis', cause: 'ECONNREFUSED', msg: down },
    { level: 'info', store: 'redis', msg: 'shared store responding again: limits are shared' },
    { level: 'warn', store: 'redis', cause: 'timeout', msg: down },
  ]);
});

describe('secrets', () => {
  /** The log line with these fields; the secret is always the same. */
  function logged(fields: object): string {
    const { logger, written } = openLog();
    logger.info(fields);
    return written.join();
  }

  test.each([
    'authorization',
    'Authorization',
    'proxy-authorization',
    'cookie',
    'set-cookie',
    'x-api-key',
    'apiKey',
    'api_key',
    'idempotency-key',
    'Idempotency-Key',
    'idempotencyKey',
    'token',
    'accessToken',
    'x-amz-security-token',
    'secret',
    'client_secret',
    'password',
    'redisPassword',
    'passphrase',
    'privateKey',
  ])('under %s are redacted at any depth', (name) => {
    for (const fields of [
      { [name]: 'hush' },
      { headers: { [name]: 'hush' } },
      { headers: { [name]: ['hush', 'hush'] } },
      { a: { b: { c: [{ d: { [name]: { value: 'hush' } } }] } } },
      { rawHeaders: ['accept', '*/*', name, 'hush'] },
      { headers: [[name, 'hush']] },
    ]) {
      const line = logged(fields);
      expect(line).not.toContain('hush');
      expect(line).toContain('[redacted]');
    }
  });

  test('in errors and their causes are redacted, and the errors are logged', () => {
    const cause = Object.assign(new Error('the cause'), { headers: { authorization: 'hush' } });
    const error = Object.assign(new TypeError('it broke', { cause }), { code: 'E_BROKE', request: { token: 'hush' } });
    for (const fields of [error, { err: error }, { reason: error }, { nested: { error } }]) {
      const line = logged(fields);
      expect(line).not.toContain('hush');
      expect(line).toContain('TypeError');
      expect(line).toContain('it broke');
      expect(line).toContain('the cause');
      expect(line).toContain('E_BROKE');
    }
  });

  test('in the bindings of a child logger are redacted', () => {
    const { logger, written } = openLog();
    const child = logger.child({ upstream: 'payments', headers: { cookie: 'hush' }, err: new Error('it broke') });
    child.child({ token: 'hush' }).info({ secret: 'hush' }, 'hello');
    expect(written.join()).not.toContain('hush');
    expect(written.join()).toContain('"upstream":"payments"');
    expect(written.join()).toContain('it broke');
  });

  test('in URLs and bytes are redacted', () => {
    const line = logged({ url: new URL('redis://me:hush@host:1/2?key=hush'), body: Buffer.from('hush') });
    expect(line).toContain('"url":"redis://host:1/2","body":"[4 bytes]"');
  });

  test('do not include values that only resemble them', () => {
    const line = logged({ tokens: 3, retry: { attempts: 2 }, token: undefined, secret: null, at: new Date(0) });
    expect(line).toContain('"tokens":3,"retry":{"attempts":2},"secret":null,"at":"1970-01-01T00:00:00.000Z"');
  });

  test('are found in circular, shared and deeply nested objects', () => {
    const circle: Record<string, unknown> = { password: 'hush' };
    circle['self'] = circle;
    const shared = { a: 1 };
    let deep: object = { password: 'hush' };
    for (let depth = 0; depth < 50; depth += 1) deep = { deep };
    const line = logged({ circle, deep, one: shared, two: shared });
    expect(line).not.toContain('hush');
    expect(line).toContain('"self":"[circular]"');
    expect(line).toContain('"one":{"a":1},"two":{"a":1}');
  });
});

test('a flush of a destination that has no flush resolves', async () => {
  const { logger } = openLog();
  await expect(flushLogger(logger)).resolves.toBeUndefined();
});
