import { describe, expect, test } from 'vitest';
import { diffConfigs } from '../../../src/config/load/config-diff.ts';
import { ConfigSource } from '../../../src/config/load/config-source.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';

const API = 'upstreams: {api: {url: "https://a.example"}}\n';

function load(yaml: string, env: Record<string, string> = {}) {
  const loaded = loadConfig(yaml, 'test.yaml', { env, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded;
}

function changes(before: string, after: string) {
  return diffConfigs(load(before), load(after)).map(({ kind, path, from, to, needsRestart }) => ({
    text: `${kind} ${path}: ${from ?? '-'} → ${to ?? '-'}`,
    needsRestart,
  }));
}

test('reports no change for another spelling of the same configuration', () => {
  expect(
    changes(API, 'routes: [{path: /, upstream: api}]\nupstreams: {api: {url: "https://A.example/", timeout: 10000ms}}'),
  ).toEqual([]);
});

test('reports each setting with its old and its new value', () => {
  expect(changes(API, 'upstreams: {api: {url: "https://a.example", timeout: 3s, retry: {retryOn: [429]}}}')).toEqual([
    { text: 'changed upstreams.api.timeout: 10s → 3s', needsRestart: false },
    expect.objectContaining({
      text: expect.stringMatching(/^changed upstreams\.api\.retry\.retryOn: \[.*\] → \[429\]$/) as string,
    }),
  ]);
});

test('reports no change of the routes beside one that is inserted', () => {
  const before = `${API}routes: [{path: /, upstream: api}, {path: /b, upstream: api}]`;
  const after = `${API}routes: [{path: /, upstream: api}, {path: /a, upstream: api}, {path: /b, upstream: api}]`;
  expect(changes(before, after)).toEqual([
    { text: 'added routes["/a"]: - → {path: /a, upstream: api}', needsRestart: false },
  ]);
  expect(changes(after, before)).toEqual([
    { text: 'removed routes["/a"]: {path: /a, upstream: api} → -', needsRestart: false },
  ]);
});

test.each([
  ['listen', 'listen: 127.0.0.1:1'],
  ['admin', 'admin: false'],
  ['telemetry', 'telemetry: 127.0.0.1:2'],
  ['workers', 'workers: 2'],
  ['limits.requests', 'limits: {requests: 2}'],
  ['limits.overload.heapUsed', 'limits: {overload: {heapUsed: 0.5}}'],
  ['drain.timeout', 'drain: {timeout: 1s}'],
  ['secret', 'secret: 0123456789abcdef'],
  ['log.format', 'log: {format: json}'],
  ['log.buffer', 'log: {buffer: 1MiB}'],
  ['clients.maxTracked', 'clients: {maxTracked: 5}'],
  ['state.file', 'state: {store: memory, file: /tmp/x}'],
])('%s needs a restart', (path, yaml) => {
  expect(diffConfigs(load(API), load(`${API}${yaml}`))).toMatchObject([{ path, needsRestart: true }]);
});

test('gRPC checks need a restart, whether the section of checks is new or not', () => {
  const trusted = `${API}clients: {trustedProxies: [10.0.0.0/8]}\n`;
  const [none, http, grpc] = ['', 'check: {}', 'check: {grpc: true}'].map((section) => load(trusted + section));
  if (none === undefined || http === undefined || grpc === undefined) throw new Error('a configuration is missing');
  expect(diffConfigs(http, grpc)).toMatchObject([{ path: 'check.grpc', needsRestart: true }]);
  expect(diffConfigs(none, grpc)).toMatchObject([{ path: 'check', needsRestart: true }]);
  expect(diffConfigs(grpc, none)).toMatchObject([{ path: 'check', needsRestart: true }]);
  expect(diffConfigs(none, http)).toMatchObject([{ path: 'check', needsRestart: false }]);
});

test('a new practice upstream needs a restart if none is running', () => {
  const section = 'practice: {limit: {kind: token-bucket, rate: 5/s, burst: 5}}\n';
  const before = load(`${section}${API}`);
  const after = load(`${section}upstreams: {api: {url: practice}}`);
  expect(diffConfigs(before, after)).toMatchObject([{ path: 'upstreams.api.url', needsRestart: true }]);
  expect(diffConfigs(after, before)).toMatchObject([{ path: 'upstreams.api.url', needsRestart: false }]);
});

test.each([
  'mode: observe',
  'forwarded: true',
  'limits: {bodyIdle: 3s, bodyRate: 0}',
  'log: {level: debug, successes: 0.5}',
  'clients: {key: [bearer], trustedProxies: [10.0.0.0/8]}',
])('%s needs no restart', (yaml) => {
  const all = diffConfigs(load(API), load(`${API}${yaml}`));
  expect(all.length).toBeGreaterThan(0);
  expect(all.filter(({ needsRestart }) => needsRestart)).toEqual([]);
});

test.each([
  ['mode: observe', 'mode'],
  ['upstreams: {api: {url: "http://a", mode: observe}}', 'upstreams.api.mode'],
])('%s makes a repeat a new write, because no record of a write is read', (yaml, path) => {
  const before = load('upstreams: {api: {url: "http://a"}}');
  const after = load(yaml.startsWith('mode') ? `upstreams: {api: {url: "http://a"}}\n${yaml}` : yaml);
  expect(diffConfigs(before, after)).toMatchObject([{ path, changesWriteIdentity: true }]);
});

test('a changed secret is reported as changed, without its value', () => {
  const [change] = diffConfigs(load(`${API}secret: 0123456789abcdef`), load(`${API}secret: fedcba9876543210`));
  expect(change).toMatchObject({ path: 'secret', from: '***', to: '*** (a different value)' });
  const written = `${API}secret: "\${SECRET}"`;
  const [other] = diffConfigs(
    load(written, { SECRET: '0123456789abcdef' }),
    load(written, { SECRET: 'fedcba9876543210' }),
  );
  expect([other?.from, other?.to]).toEqual([`\${SECRET}`, `\${SECRET} (a different value)`]);
});

test('a submitted text is validated as the file would be, and reads only files that the configuration names', () => {
  const files: Record<string, string> = {
    '/etc/tidegate.yaml': `${API}secret: "\${file:/run/known}"`,
    '/run/known': '0123456789abcdef',
    '/run/other': 'not yours to know of',
  };
  const reads: string[] = [];
  const readFile = (path: string): string => {
    reads.push(path);
    return files[path] ?? '';
  };
  const source = new ConfigSource({ config: '/etc/tidegate.yaml', listen: '127.0.0.1:1' }, { env: {}, readFile });
  expect(source.read().kind).toBe('ok');
  expect([...source.files]).toEqual(['/etc/tidegate.yaml', '/run/known']);
  expect(source.validate(files['/etc/tidegate.yaml'] ?? '')).toEqual({ kind: 'valid', warnings: [] });
  const wrong = source.validate(`${API}timeout: 3s`);
  expect(wrong).toMatchObject({ kind: 'mistakes', mistakes: [{ file: 'config', line: 2, path: 'timeout' }] });
  reads.length = 0;
  const nosy = source.validate(`${API}secret: "\${file:/run/other}"`);
  expect(nosy).toMatchObject({
    kind: 'mistakes',
    mistakes: [{ message: expect.stringContaining('only files that the active configuration names') as string }],
  });
  expect(reads).not.toContain('/run/other');
  // A comparison does not change the watched files.
  expect([...source.files]).toEqual(['/etc/tidegate.yaml', '/run/known']);
});

describe('marks what changes the identity of a write, and nothing else', () => {
  const api = (more: string, upstream = '') =>
    `upstreams: {api: {url: "https://a.example"${upstream}, idempotency: {${more}}}}\n`;
  const inBody = api('jsonField: key');
  const small = ', retry: {replayLimit: 1KiB}';
  const route = (more: string) => `routes: [{path: /, upstream: api${more}}]\n`;

  test.each([
    ['another header', API, api('header: X-Key'), ['upstreams.api.idempotency.header']],
    [
      'a field of the body',
      api('header: X-Key'),
      api('header: X-Key, jsonField: key'),
      ['upstreams.api.idempotency.jsonField'],
    ],
    ['an account', API, api('account: "header:X-Account"'), ['upstreams.api.idempotency.account']],
    ['the host', API, api('', ', preserveHost: true'), ['upstreams.api.preserveHost']],
    ['a replayLimit, with keys in bodies', inBody, api('jsonField: key', small), ['upstreams.api.retry.replayLimit']],
    ['a replayLimit, with keys in headers', API, api('', small), []],
    ['a replayLimit of a route', inBody + route(''), inBody + route(small), ['routes["/"].retry']],
    ['a replayLimit of a route, with keys in headers', API + route(''), API + route(small), []],
    ['another retry setting of a route', inBody + route(''), inBody + route(', retry: {attempts: 1}'), []],
    ['the path at the upstream', API + route(''), API + route(', rewritePrefix: /v1'), ['routes["/"].rewritePrefix']],
    ['the ttl', API, api('ttl: 1h'), []],
  ])('%s', (_, before, after, paths) => {
    const both = [
      [before, after],
      [after, before],
    ] as const;
    for (const [from, to] of both) {
      const identifying = diffConfigs(load(from), load(to)).filter((each) => each.changesWriteIdentity);
      expect(identifying.map(({ path }) => path)).toEqual(paths);
    }
  });
});
