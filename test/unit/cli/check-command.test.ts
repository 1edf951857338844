import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { makePem } from '../../support/certificates.ts';

function run(text: string, full = false) {
  return runCheck('tidegate.yaml', { full }, { env: {}, readFile: () => text });
}

test('prints the verdict and all warnings first, then the worst cases, and no settings', () => {
  const report = run(`upstreams:
  api: {url: https://a, timeout: 30s, retry: {unkeyedWrites: always}}
routes:
  - {path: /, upstream: api}
  - {path: /v1, host: a.example, methods: [GET, HEAD], upstream: api, timeout: 3s, retry: {attempts: 1, replayLimit: 1KiB}}
`);
  expect(report.exitCode).toBe(0);
  expect(report.text.endsWith('\n')).toBe(true);
  expect(report.text.split('\n')).toEqual([
    'tidegate.yaml: valid, 2 warnings',
    'tidegate.yaml:2:62 warning: upstreams.api.retry.unkeyedWrites: a write without an idempotency key may take effect twice',
    'warning: / → api: drain.timeout (25s) is shorter than the longest request: a restart may cut it off',
    '',
    'Worst cases:',
    '  / → api',
    '    sends: up to 4 per request; retries of errors are limited to 20 % of the successes over time, and to 10 without any success; the learned rate paces retries after a 429 instead',
    '    response: starts at most 30s after the end of the upload (timeout); without it: 4 × (1s queue + 5s attempt) + 700ms backoff (3 × 61s if the upstream sends Retry-After) + 5s if the client returns at its Retry-After',
    '    refusal: Retry-After of at most 41s, or what the upstream asks for, if that is longer',
    '    clients: should wait 30s; one that gives up earlier gets no response',
    '      its write without an idempotency key may have taken effect',
    '      its write with a key is aborted, and can be repeated with the same key',
    '      for clients that wait only 5s, for example, set timeout: 4500ms and perTryTimeout: 2s on the route',
    '  GET,HEAD a.example/v1 → api',
    '    sends: 1 per request, no retries',
    '    response: starts at most 3s after the end of the upload (timeout); without it: 1s queue + 3s attempt + 5s if the client returns at its Retry-After',
    '    refusal: Retry-After of at most 41s, or what the upstream asks for, if that is longer',
    '    clients: should wait 3s; one that gives up earlier gets no response',
    '  memory: up to 269MiB, in addition to Node itself and data in transit',
    '    64MiB: request bodies kept for retries',
    '    157MiB: 10000 requests that wait in queues, about 16KiB each',
    '    25MiB: 100000 clients, about 256B each',
    '    24MiB: explanations of requests',
    '',
    'check --full also prints every setting in effect, with defaults and presets.',
    '',
  ]);
});

test('prints with --full every setting as YAML, behind the same report in comments', () => {
  const text = 'upstreams: {api: {url: https://a, timeout: 12s, retry: {unkeyedWrites: always}}}\n';
  const [brief, full] = [run(text).text, run(text, true).text];
  const report = brief.split('\n').slice(0, -2);
  expect(full.startsWith(report.map((line) => `# ${line}`.trimEnd()).join('\n'))).toBe(true);
  expect(full.split('\n')[0]).toBe('# tidegate.yaml: valid, 1 warning');
  expect(full.endsWith('\n')).toBe(true);
  expect(parse(full)).toMatchObject({ listen: '127.0.0.1:8080', upstreams: { api: { timeout: '12s' } } });
  expect(brief).not.toContain('127.0.0.1:8080');
});

test('states that there are no warnings, and prints routes with equal worst cases together', () => {
  const { text } = run(`upstreams: {api: {url: https://a}, other: {url: https://b}}
routes: [{path: /a, upstream: api}, {path: /b, upstream: other}, {path: /c, upstream: api, timeout: 8s}]
`);
  const lines = text.split('\n');
  expect(lines.slice(0, 6)).toEqual([
    'tidegate.yaml: valid, no warnings',
    '',
    'Worst cases:',
    '  /a → api',
    '  /b → other',
    expect.stringMatching(/^ {4}sends: /),
  ]);
  expect(lines.filter((line) => line.includes('sends:'))).toHaveLength(2);
});

test('omits sends, retries and drains for a route that only answers checks', () => {
  const { text } = run(`upstreams: {api: {url: https://a, queue: {maxWait: 2s}}}
routes: [{path: /, upstream: api, check: only}]
clients: {trustedProxies: [127.0.0.1]}
check: {}
drain: {timeout: 5s}
`);
  const [, worst = ''] = text.split('  / → api\n');
  expect(worst.split('\n').slice(0, 3)).toEqual([
    '    checks only: answered within 3s; the ingress must wait that long',
    '    refusal: Retry-After of at most 42s, or what the upstream asks for, if that is longer',
    expect.stringMatching(/^ {2}memory: /),
  ]);
  expect(text).toContain('valid, no warnings\n');
});

test('lists nested limits in the order in which a request meets them', () => {
  const { text } = run(`upstreams:
  api:
    url: https://a
    rateLimit: {initialRate: 100/s}
    limits:
      - {name: endpoint, match: {path: ["/v1/{resource}", "/v1/{resource}/**"]}, initialRate: 25/s, maxRate: 30/s}
      - {name: write, match: {method: [POST, PUT]}, scope: client, each: [method]}
clients: {classes: {batch: {match: {key: [a]}, maxRate: 20/s}}}
`);
  const lines = text.split('\n');
  const from = lines.indexOf('Limits:');
  expect(lines.slice(from, from + 6)).toEqual([
    'Limits:',
    '  api: a request needs a token of every limit that applies to it',
    '    all requests: one limit for all, rate learned from 100/s',
    '    class batch: 20/s for all its clients together',
    '    endpoint: /v1/{resource} /v1/{resource}/**, one limit per resource, rate learned from 25/s, at most 30/s',
    '    write: POST or PUT, one limit per client and method, rate learned',
  ]);
});

test('lists API keys that expire, and marks those that have expired', () => {
  const line = (id: string, expiry: string): string =>
    `${id} sha256:${'ab'.repeat(32)} 2026-01-01T00:00:00Z${expiry} shop\n`;
  const keys = `${line('aaaaaaaaaaaa', ' expires:2999-01-01T00:00:00Z')}${line('bbbbbbbbbbbb', '')}${line('cccccccccccc', ' expires:2026-02-01T00:00:00Z')}`;
  const yaml = 'upstreams: {api: {url: https://a}}\nclients: {auth: {apiKeys: {file: clients.keys}}}\n';
  const readFile = (path: string): string => (path === 'clients.keys' ? keys : yaml);
  const lines = runCheck('tidegate.yaml', { full: false }, { env: {}, readFile }).text.split('\n');
  const from = lines.indexOf('API keys:');
  expect(lines.slice(from, from + 4)).toEqual([
    'API keys:',
    '  clients.keys: 3 API keys, 2 with an expiry',
    '    cccccccccccc of shop: expired at 2026-02-01T00:00:00Z',
    '    aaaaaaaaaaaa of shop: expires at 2999-01-01T00:00:00Z',
  ]);
});

test('reports all mistakes, and nothing else', () => {
  expect(run('upstreams: {api: {url: a}}\nlissten: x\n')).toEqual({
    kind: 'mistakes',
    exitCode: 1,
    text: `tidegate.yaml:1:24 upstreams.api.url: expected an http or https URL such as https://api.example.com
tidegate.yaml:2:1 lissten: unknown key (did you mean listen?)
tidegate.yaml:2:10 listen: expected host:port, [::]:port or unix:/path
`,
  });
});

test('reports a certificate that serve could not read', () => {
  const text = 'upstreams:\n  pay:\n    url: https://a\n    tls: {ca: /nope.pem}\n';
  const readFile = (path: string): string => {
    if (path === 'x.yaml') return text;
    throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
  };
  expect(runCheck('x.yaml', { full: false }, { env: {}, readFile })).toEqual({
    kind: 'mistakes',
    exitCode: 1,
    text: 'x.yaml:4:15 upstreams.pay.tls.ca: cannot be read: no such file\n',
  });
});

test('reports an unreadable file in one line', () => {
  const readFile = (): never => {
    throw Object.assign(new Error('EACCES: permission denied, open …'), { code: 'EACCES' });
  };
  expect(runCheck('tidegate.yaml', { full: false }, { env: {}, readFile })).toEqual({
    kind: 'mistakes',
    exitCode: 1,
    text: 'tidegate.yaml: cannot be read: permission denied\n',
  });
});

describe('the worst cases', () => {
  /** The printed lines of the one route, or those that a test selects. */
  function linesOf(upstream: string, rest = ''): string[] {
    const { text, exitCode } = run(`${rest}\nupstreams: {api: {url: "https://a", ${upstream}}}\n`);
    expect(exitCode).toBe(0);
    return text.split('\n').map((line) => line.trim());
  }
  const find = (lines: readonly string[], start: string) => lines.find((line) => line.startsWith(start));

  test('reports the parts of a response time that cannot reach the timeout', () => {
    const lines = linesOf(
      'timeout: 60s, perTryTimeout: 2s, queue: {maxWait: 500ms}, retry: {attempts: 2, retryOn: [reset]}',
    );
    expect(find(lines, 'response')).toBe(
      'response: starts at most 10.1s after the end of the upload: 2 × (500ms queue + 2s attempt) + 100ms backoff + 5s if the client returns at its Retry-After',
    );
    expect(find(lines, 'clients: ')).toBe('clients: should wait 10.1s; one that gives up earlier gets no response');
    expect(find(lines, 'for clients')).toBe(
      'for clients that wait only 5s, for example, set timeout: 4500ms on the route',
    );
  });

  test('recommends no shorter timeout where a shorter one is set already', () => {
    for (const lines of [
      linesOf('timeout: 4500ms, perTryTimeout: 2s'),
      linesOf('perTryTimeout: 4500ms', 'mode: observe'),
    ]) {
      expect(find(lines, 'clients: ')).toBe('clients: should wait 4.5s; one that gives up earlier gets no response');
      expect(find(lines, 'for clients')).toBeUndefined();
    }
    expect(find(linesOf('timeout: 70s', 'mode: observe'), 'for clients')).toBe(
      'for clients that wait only 5s, for example, set perTryTimeout: 4500ms on the route',
    );
  });

  test('counts the longest back-off of any reason and class', () => {
    const fixed = (interval: string) => `{strategy: fixed, baseInterval: ${interval}}`;
    const retry = `retry: {attempts: 2, retryOn: [reset], backOff: ${fixed('1s')}, backOffFor: {reset: ${fixed('2s')}}}`;
    const between = (lines: string[]) => /(\d+m?s) backoff/.exec(find(lines, 'response') ?? '')?.[1];
    expect(between(linesOf(`${retry}, timeout: 1m`))).toBe('2s');
    const classes = `clients: {classes: {batch: {match: {key: [b*]}, backOff: {baseInterval: 9s}}}}`;
    expect(between(linesOf(`${retry}, timeout: 1m`, classes))).toBe('9s');
  });

  test('counts no sends after a backoff that gives up', () => {
    const givesUp = 'backOff: {strategy: ethernet}';
    const sends = /up to (\d+) per request/.exec(
      find(linesOf(`retry: {attempts: 100, ${givesUp}}`), 'sends') ?? '',
    )?.[1];
    expect(sends).toBe('16');
  });

  test('omits writes for a route that takes none', () => {
    const { text } = run('upstreams: {api: {url: https://a}}\nroutes: [{upstream: api, methods: [GET, PUT]}]');
    expect(text).toContain('one that gives up earlier');
    expect(text).not.toContain('its write');
  });

  test('reports a write that is completed after its client has left', () => {
    expect(linesOf('retry: {onClientGone: finish}')).toContain(
      'its write with a key is completed, and can be repeated with the same key',
    );
  });

  test.each([
    [
      'retry: {attempts: 20}',
      '',
      'warning: / → api: up to 20 sends per request: the first two bring most of the benefit',
    ],
    ['retry: {budget: {ratio: 2}}', '', 'warning: / → api: a budget ratio of 2 allows more retries than successes'],
    [
      'timeout: 5s',
      '',
      'warning: / → api: perTryTimeout is as long as timeout: an attempt that hangs leaves no time for another',
    ],
    [
      'timeout: 70s',
      '',
      'warning: / → api: drain.timeout (25s) is shorter than the longest request: a restart may cut it off',
    ],
    [
      'retry: {}',
      'limits: {replayMemory: 2GiB}',
      'warning: memory: up to 2253MiB: provide that much, or lower limits.replayMemory, clients.maxTracked or queue.maxDepth',
    ],
  ])('warns of unwise settings: %s %s', (upstream, rest, warning) => {
    expect(linesOf(upstream, rest)).toContain(warning);
    expect(linesOf('retry: {}')[0]).toBe('tidegate.yaml: valid, no warnings');
  });

  test('shows that a low minimum rate gives refused clients a later Retry-After', () => {
    expect(find(linesOf('rateLimit: {minRate: 1/m}'), 'refusal')).toContain('at most 91s,');
  });

  test('counts per-client limits if there are any', () => {
    expect(linesOf('rateLimit: {scope: client}')).toContain(
      '586MiB: 100000 limits of single clients or credentials, about 6KiB each',
    );
    expect(find(linesOf('queue: {maxWait: 0}'), '0B')).toBe('0B: 0 requests that wait in queues, about 16KiB each');
  });

  test('counts a hundred requests for each connection over HTTP/2', () => {
    const pem = JSON.stringify(makePem());
    const listen = (http2: boolean) =>
      `listen: {address: localhost:1, tls: {cert: ${pem}, key: ${pem}}, http2: ${http2}}\nlimits: {connections: 10}`;
    const waiting = (rest: string) => linesOf('retry: {}', rest).find((line) => line.includes('requests that wait'));
    expect(waiting(listen(false))).toContain(' 10 requests that wait');
    expect(waiting(listen(true))).toContain(' 1000 requests that wait');
  });

  test('counts no more waiting requests than may be open, however few connections carry them', () => {
    expect(linesOf('retry: {}', 'limits: {requests: 300}')).toContain(
      '4800KiB: 300 requests that wait in queues, about 16KiB each',
    );
  });

  test('shows that nothing waits, is refused or retried in observe mode', () => {
    const lines = linesOf('retry: {attempts: 9}', 'mode: observe');
    expect(lines).toContain('observe mode: every request is sent once, at once; none is queued, refused or retried');
    expect(find(lines, 'sends')).toBe('sends: 1 per request, at once: observe mode');
    expect(find(lines, 'response')).toBe('response: starts at most 5s after the end of the upload: 5s attempt');
    expect(find(lines, 'refusal')).toBeUndefined();
    expect(lines).toContain('157MiB: 10000 requests that would wait in queues, about 16KiB each');
  });
});
