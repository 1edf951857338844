import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { logChanges } from '../../src/telemetry/log/event-log.ts';
import { createLogger, flush, type LogLevel } from '../../src/telemetry/log/logger.ts';
import { logRequests } from '../../src/telemetry/log/request-log.ts';
import type { RequestRecord, TideEvent } from '../../src/core/events/proxy-events.ts';

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
  queued: 12.34,
  slept: 100.06,
  toHead: 200,
  took: 240.04,
  retryAfter: undefined,
  cut: false,
};

function done(fields: Partial<RequestRecord> = {}): TideEvent {
  return { type: 'done', record: { ...RECORD, ...fields } };
}

describe('a request', () => {
  test('is one line', () => {
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

  test('that was refused says why and until when', () => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 1)(done({ outcome: 'refused', reason: 'over_share', status: 429, retryAfter: 3 }));
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
    [{ outcome: 'forwarded', cut: true }, 'warn'],
  ] as const)('with %j is a line of level %s', (fields, level) => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 1)(done(fields));
    expect(lines()).toMatchObject([{ level }]);
  });

  test('that went well at once is told of as often as is asked for, and any other always', () => {
    const { logger, lines } = openLog();
    const listen = logRequests(logger, () => 0.25);
    for (let i = 0; i < 100; i += 1) listen(done({ outcome: 'forwarded', attempts: 1, id: `${i}` }));
    expect(lines()).toHaveLength(25);
    const others = [
      { outcome: 'recovered' },
      { outcome: 'refused', status: 429 },
      { outcome: 'forwarded', status: 404 },
      { outcome: 'forwarded', cut: true },
      { outcome: 'client_gone' },
    ] as const;
    for (const fields of others) listen(done(fields));
    expect(lines().slice(25)).toMatchObject(others.map(({ outcome }) => ({ outcome })));
  });

  test('that went well is not told of, where nobody wants to know', () => {
    const { logger, lines } = openLog();
    logRequests(logger, () => 0)(done({ outcome: 'forwarded', attempts: 1 }));
    expect(lines()).toEqual([]);
  });

  test('is told without a query, even if its record has one', () => {
    const { logger, written } = openLog();
    logRequests(logger, () => 1)(done({ path: '/v1/charges?key=sk_live_1' }));
    expect(written.join()).toContain('"path":"/v1/charges"');
    expect(written.join()).not.toContain('sk_live_1');
  });
});

describe('changes', () => {
  const changes: readonly TideEvent[] = [
    { type: 'limit-state', upstream: 'payments', scope: 'upstream', from: 'open', to: 'backoff' },
    { type: 'limit-state', upstream: 'payments', scope: 'upstream', from: 'backoff', to: 'blocked' },
    { type: 'limit-state', upstream: 'payments', scope: 'client', from: 'open', to: 'blocked' },
    { type: 'cut', upstream: 'payments', scope: 'upstream', cause: 'first', from: Infinity, to: 40 },
    { type: 'client-state', upstream: 'payments', client: 'c0ffee', from: 'normal', to: 'backoff' },
    { type: 'client-cut', upstream: 'payments', client: 'c0ffee', allowance: 0.5 },
  ];

  test("of an upstream's limit are told at info, its being blocked at warn", () => {
    const { logger, lines } = openLog('info');
    for (const event of changes) logChanges(logger)(event);
    expect(lines()).toEqual([
      { level: 'info', upstream: 'payments', scope: 'upstream', from: 'open', to: 'backoff', msg: 'limit changed' },
      { level: 'warn', upstream: 'payments', scope: 'upstream', from: 'backoff', to: 'blocked', msg: 'limit changed' },
    ]);
  });

  test('of clients, and cuts, are told at debug', () => {
    const { logger, lines } = openLog('debug');
    for (const event of changes) logChanges(logger)(event);
    expect(lines().slice(2)).toEqual([
      { level: 'debug', upstream: 'payments', scope: 'client', from: 'open', to: 'blocked', msg: 'limit changed' },
      { level: 'debug', upstream: 'payments', scope: 'upstream', cause: 'first', to: 40, msg: 'rate cut' },
      { level: 'debug', upstream: 'payments', client: 'c0ffee', from: 'normal', to: 'backoff', msg: 'client changed' },
      { level: 'debug', upstream: 'payments', client: 'c0ffee', allowance: 0.5, msg: 'client cut' },
    ]);
  });
});

test('a store that does not answer is told of once, and once when it does again', () => {
  const { logger, lines } = openLog();
  const listen = logChanges(logger);
  const change = (isDegraded: boolean, cause?: string): void =>
    listen({ type: 'store-degraded', store: 'redis', isDegraded, cause });
  change(false);
  change(true, 'ECONNREFUSED');
  change(true, 'timeout');
  change(false);
  change(true, 'timeout');
  const down = 'the store does not answer: limits are kept by this process alone';
  expect(lines()).toEqual([
    { level: 'warn', store: 'redis', cause: 'ECONNREFUSED', msg: down },
    { level: 'info', store: 'redis', msg: 'the store answers: limits are shared again' },
    { level: 'warn', store: 'redis', cause: 'timeout', msg: down },
  ]);
});

describe('secrets', () => {
  /** What a line of these fields holds; the secret is always the same. */
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
  ])('named %s are blanked at any depth', (name) => {
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

  test('in errors and their causes are blanked, and the errors told', () => {
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

  test('in the bindings of a child logger are blanked', () => {
    const { logger, written } = openLog();
    const child = logger.child({ upstream: 'payments', headers: { cookie: 'hush' }, err: new Error('it broke') });
    child.child({ token: 'hush' }).info({ secret: 'hush' }, 'hello');
    expect(written.join()).not.toContain('hush');
    expect(written.join()).toContain('"upstream":"payments"');
    expect(written.join()).toContain('it broke');
  });

  test('in URLs and bytes are blanked', () => {
    const line = logged({ url: new URL('redis://me:hush@host:1/2?key=hush'), body: Buffer.from('hush') });
    expect(line).toContain('"url":"redis://host:1/2","body":"[4 bytes]"');
  });

  test('are not what only looks like one', () => {
    const line = logged({ tokens: 3, retry: { attempts: 2 }, token: undefined, secret: null, at: new Date(0) });
    expect(line).toContain('"tokens":3,"retry":{"attempts":2},"secret":null,"at":"1970-01-01T00:00:00.000Z"');
  });

  test('do not trip over circles, shared objects and endless depth', () => {
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

describe('standard output', () => {
  const log = JSON.stringify(new URL('../../src/telemetry/log/logger.ts', import.meta.url).href);
  const output = JSON.stringify(new URL('../../src/telemetry/log/stdout-destination.ts', import.meta.url).href);

  /** What a process that runs `script` has written when it has ended. */
  function run(script: string): string[] {
    const source = `
      import { createLogger, flush } from ${log};
      import { LogOutput } from ${output};
      const logger = createLogger({ level: 'info', destination: new LogOutput(1e6) });
      ${script}`;
    const written = execFileSync(process.execPath, ['--input-type=module', '--eval', source], { encoding: 'utf8' });
    return written.split('\n').filter((line) => line !== '');
  }

  // reallyExit runs no exit handlers: what is written then is what had been written before.
  test('has every line after flush', () => {
    expect(
      run('for (let n = 0; n < 1000; n += 1) logger.info({ n }); await flush(logger); process.reallyExit(0);'),
    ).toHaveLength(1000);
  });

  test('has every line when the process ends by itself or is told to exit', () => {
    expect(run("logger.info('one');")).toHaveLength(1);
    expect(run("logger.info('one'); process.exit(0);")).toHaveLength(1);
  });

  test('has whole lines when several processes write them', () => {
    // Longer in bytes than in characters.
    const script = `
      import { LogOutput } from ${output};
      const out = new LogOutput(1e8, true);
      for (let n = 0; n < 4000; n += 1) out.write('<' + 'ö'.repeat((n * 37) % 400) + '>\\n');`;
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-log-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'write.mjs'), script);
    const several = '"$0" write.mjs & "$0" write.mjs & "$0" write.mjs & wait';
    const slowly = `(${several}) | dd bs=512 status=none`;
    const written = execFileSync('sh', ['-c', slowly, process.execPath], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    const lines = written.trimEnd().split('\n');
    expect(lines).toHaveLength(12_000);
    expect(lines.filter((line) => !/^<ö*>$/.test(line))).toEqual([]);
  });

  test('has a line soon, however few there are', () => {
    const lines = run("logger.info('one'); setTimeout(() => process.reallyExit(0), 2000);");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^\{"level":"info","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","msg":"one"\}$/);
  });
});

test('flush of a destination that cannot be flushed resolves', async () => {
  const { logger } = openLog();
  await expect(flush(logger)).resolves.toBeUndefined();
});
