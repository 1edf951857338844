import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { refusingUrl } from '../../support/upstreams/http-upstream.ts';
import { run, startProcess } from '../../support/proxy/process.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

/** Every secret contains this, and nothing else does. */
const MARK = 'hush';
const LONG = 'hush-0123456789abcdef';

interface Output {
  readonly where: string;
  readonly text: string;
}

function expectNoSecret(outputs: readonly Output[]): void {
  for (const { where, text } of outputs) {
    const at = text.toLowerCase().indexOf(MARK);
    expect(at < 0 ? '' : `${where}: …${text.slice(Math.max(0, at - 200), at + 60)}…`).toBe('');
  }
}

function folderOf(files: Readonly<Record<string, string>>): (name: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return (name) => join(folder, name);
}

test('no secret appears in the log, metrics, admin API, proxy responses or the output of check', async () => {
  const upstream = await startUpstream();
  const path = folderOf({ token: `${LONG}-token-of-a-file\n` });
  writeFileSync(
    path('tidegate.yaml'),
    `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", token: "\${file:${path('token')}}"}
telemetry: 127.0.0.1:0
drain: {delay: 0, timeout: 1s}
secret: ${LONG}-of-the-hash
log: {level: trace}
limits: {bodyIdle: 300ms, headers: 300ms, requests: 50}
upstreams:
  api:
    url: "${upstream.url}"
    perTryTimeout: 300ms
    retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}
    idempotency: {header: X-Once}
  down: {url: "${await refusingUrl()}", retry: {attempts: 1}}
  tls: {url: "${upstream.url.replace('http:', 'https:')}", retry: {attempts: 1}}
  limited: {url: "${upstream.url}", rateLimit: {scope: credential, initialRate: 0.5/s, maxRate: 0.5/s}, queue: {maxWait: 0}}
routes:
  - {path: /, upstream: api}
  - {path: /down, upstream: down}
  - {path: /tls, upstream: tls}
  - {path: /limited, upstream: limited}
  - {path: /hooks, upstream: api, verify: {scheme: stripe, secrets: [${LONG}-webhook, "\${file:${path('token')}}"]}}
clients:
  key: ["header:x-api-key", bearer, "path:2"]
  trustedProxies: [127.0.0.1]
  classes:
    gold: {match: {header: {authorization: "Bearer ${LONG}-class"}, key: [${LONG}-key, "${LONG}-*"]}, weight: 2}
`,
  );
  const outputs: Output[] = [];
  const { child, ended, log } = startProcess(['--config', path('tidegate.yaml')]);
  const [listening] = await eventually(
    () => log().filter(({ msg }) => msg === 'listening'),
    ({ length }) => length === 1,
  );
  const { url, admin, telemetry } = listening as { url: string; admin: string; telemetry: string };

  // Requests full of secrets, with every possible outcome.
  const secrets = [
    ...['Authorization', 'Bearer hush-bearer', 'Cookie', 'session=hush-cookie', 'X-Api-Key', 'hush-api-key'],
    ...['Idempotency-Key', 'hush-once', 'X-Once', 'hush-once', 'Proxy-Authorization', 'Basic hush-proxy'],
    ...[
      'X-Forwarded-For',
      '203.0.113.7, hush-address',
      'X-Amz-Security-Token',
      'hush-aws',
      'Referer',
      'http://x/?hush=1',
    ],
  ];
  const query = '?X-Amz-Signature=hush-signature&token=hush-query&hush-name';
  let asked = 0;
  const ask = async (target: string, headers: readonly string[] = [], method = 'POST'): Promise<void> => {
    asked += 1;
    const answer = await send(url, target + query, {
      method,
      headers: [...secrets, ...headers],
      body: 'amount=hush',
    }).catch(() => undefined);
    if (answer?.header('content-type') === 'application/problem+json') {
      outputs.push({
        where: `the answer to ${target}`,
        text: `${answer.headers.join('\n')}\n${answer.body.toString()}`,
      });
    }
  };
  for (const script of [
    '200; header=Set-Cookie:hush',
    '500',
    'reset',
    'hang',
    '200; cut=3',
    '404',
    '503, 200',
    '429',
  ]) {
    await ask('/pay', ['X-Practice-Script', script]);
  }
  await ask('/down/hush-segment');
  await ask('/tls/hush-segment');
  await ask('/hooks');
  await ask('/hooks', ['Stripe-Signature', `t=${Math.floor(Date.now() / 1000)},v1=${'0'.repeat(64)}`]);
  await ask('/limited/hush-segment');
  await ask('/limited/hush-segment');
  await ask('/tenants/hush-segment', [], 'GET');
  await ask('/../hush-segment');
  await ask('http://hush-user:hush-password@elsewhere.example/');
  await ask('/loop', ['Expect', 'hush-expectation']);
  expect(asked).toBe(18);
  const { received } = upstream.stats();
  const isThere = () => upstream.stats().received > received;
  await sendAndLeave(url, `/pay${query}`, { headers: [...secrets, 'X-Practice-Script', 'hang'] }, isThere);
  for (const bytes of [
    'GET / HTTP/1.1\r\nHost: hush-host\r\nHost: hush-other\r\nConnection: close\r\n\r\n',
    'GET / HTTP/9.9\r\nAuthorization: Bearer hush\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'hush'.repeat(10_000)}\r\n\r\n`,
    'CONNECT hush.example:443 HTTP/1.1\r\nHost: hush.example\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer hush\r\n\r\nhush',
    'GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hush',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: hush\r\n\r\n',
  ]) {
    const client = await openRaw(url);
    client.write(bytes);
    outputs.push({ where: `the answer to ${bytes.slice(0, 20)}`, text: await client.ended() });
  }

  // The admin and telemetry ports, with valid and invalid requests.
  for (const [base, target, headers] of [
    [admin, '/metrics', {}],
    [telemetry, '/metrics', {}],
    [admin, '/readyz?verbose&hush', {}],
    [admin, '/api/config?token=hush', { authorization: 'Bearer hush-guess' }],
    [admin, '/%zz?hush', {}],
    [admin, '/metrics', { origin: 'http://hush.example' }],
    [telemetry, '/hush', {}],
  ] as const) {
    const answer = await fetch(`${base}${target}`, { headers });
    outputs.push({ where: `${base}${target}`, text: `${JSON.stringify([...answer.headers])}${await answer.text()}` });
  }
  const lines = await eventually(
    () => log().filter(({ msg }) => msg === 'request'),
    ({ length }) => length >= asked,
  );
  expect(new Set(lines.map(({ client }) => client)).size).toBeGreaterThan(2);
  expect(lines.some(({ client }) => /^[0-9a-f]{16}$/.test(String(client)))).toBe(true);
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  expect(code).toBe(0);
  outputs.push({ where: 'stdout', text: stdout }, { where: 'stderr', text: stderr });
  expect(outputs.every(({ where, text }) => where.startsWith('the answer') || text !== '' || where === 'stderr')).toBe(
    true,
  );

  // The output of check for a valid configuration.
  const check = await run(['check', '--full', path('tidegate.yaml')]);
  expect(check.code).toBe(0);
  expect(check.stdout).toContain('weight: 2');
  outputs.push({ where: 'check', text: check.stdout + check.stderr });
  expectNoSecret(outputs);
});

test('no secret appears in configuration errors, wherever it is written', async () => {
  const path = folderOf({
    secret: LONG,
    'broken.yaml': `secret: {${LONG}\nupstreams: {api: {url: "https://hush:hush@api.example.com/hush?hush"}}\n`,
    'wrong.yaml': `
secret: hush
admin: {listen: "0.0.0.0:1", token: hush}
upstreams: {api: {url: "https://hush-user:hush-password@api.example.com", tls: {key: "-----BEGIN PRIVATE KEY-----\\nhush\\n"}}}
clients: {classes: {a: {match: {header: {x-api-key: hush}}, weight: -1}}}
state: {store: redis, url: "redis://:hush@a/x", password: [hush], prefix: "a b"}
`,
  });
  writeFileSync(path('elsewhere.yaml'), `upstreams: {api: {url: "\${file:${path('secret')}}"}}\nlisten: "\${TOKEN}"\n`);
  writeFileSync(path('absent.yaml'), `secret: \${file:${path('nowhere')}}\nupstreams: {api: {url: "https://a"}}\n`);
  const env = { TOKEN: LONG };
  const all = await Promise.all([
    run(['check', path('broken.yaml')]),
    run(['--config', path('wrong.yaml')]),
    run(['check', path('elsewhere.yaml')], env),
    run(['--config', path('absent.yaml')]),
    run(['--upstream', 'https://hush-user:hush-password@api.example.com']),
    run([], {
      TIDEGATE_UPSTREAM: 'https://hush-user:hush-password@a',
      TIDEGATE_ADMIN: 'hush',
      TIDEGATE_LISTEN: 'hush',
    }),
    run(['--upstream', 'http://a'], { TIDEGATE_REDIS_URL: 'rediz://hush-user:hush/@a' }),
    run(['--upstream', 'http://a'], { TIDEGATE_REDIS_URL: 'redis://hush@a/hush' }),
  ]);
  expect(all.map(({ code }) => code)).toEqual(all.map(() => 1));
  expectNoSecret(all.map(({ stdout, stderr }, i) => ({ where: `mistake ${i}`, text: stdout + stderr })));
});

test('no secret appears in the report of an uncaught exception', async () => {
  const fault = `
    setTimeout(() => {
      const headers = { authorization: 'Bearer hush', cookie: 'hush', 'x-api-key': 'hush' };
      const rawHeaders = ['Authorization', 'Bearer hush'];
      throw Object.assign(new Error('a fault'), { request: { headers, rawHeaders, url: new URL('http://hush:hush@x/?hush') } });
    }, 300);
  `;
  const { ended } = startProcess(
    ['--upstream', 'http://127.0.0.1:1', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    {
      env: { NODE_OPTIONS: `--import=${folderOf({ 'fault.mjs': fault })('fault.mjs')}` },
    },
  );
  const { code, stdout, stderr } = await ended;
  expect(code).toBe(1);
  expect(stdout).toContain('"level":"fatal"');
  expectNoSecret([
    { where: 'stdout', text: stdout },
    { where: 'stderr', text: stderr },
  ]);
});
