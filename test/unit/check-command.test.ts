import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { check } from '../../src/cli/check/check-command.ts';
import { KEPT } from '../../src/cli/check/describe-memory.ts';
import { ClientTable } from '../../src/store/clients/client-table.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { makePem } from '../support/certificates.ts';
import { heldBytes } from '../support/heap.ts';
import { upstreamSettings } from '../support/policy.ts';

function run(text: string) {
  return check('tidegate.yaml', { env: {}, readFile: () => text });
}

test('a sound configuration is printed as YAML, with its worst cases and warnings in comments', () => {
  const report = run(`upstreams:
  api: {url: https://a, timeout: 12s, retry: {unkeyedWrites: always}}
routes:
  - {path: /, upstream: api}
  - {path: /v1, host: a.example, methods: [GET, HEAD], upstream: api, timeout: 3s, retry: {attempts: 1, replayLimit: 1KiB}}
`);
  expect(report.exitCode).toBe(0);
  expect(report.text.endsWith('\n')).toBe(true);
  expect(report.text.split('\n').filter((line) => line.startsWith('#'))).toEqual([
    '#',
    '# Worst cases:',
    '#   / → api',
    '#     sends: up to 4 a request; over time retries of errors add at most 20 % of what succeeds, and when nothing succeeds they end after 10; retries of a 429 wait for the learned rate instead',
    "#     answer: begins within 12s of the upload's end: timeout cuts 4 × 1s in the queue, 1s more for who comes back when told to, 4 × 5s at the upstream, 700ms between attempts, or 3 × 61s where the upstream asks for it",
    '#     refused: told to come back within 41s, or when the upstream asks for, if that is later',
    '#     a client that waits 5s: may be gone before its answer; one attempt (5s), a Retry-After of the upstream (12s) may outlast it',
    '#       its write without an idempotency key may have happened then, and nobody knows',
    '#       its write with a key is broken off, and may be sent again with the same key',
    '#       for such clients set timeout: 4500ms and perTryTimeout: 2s on the route',
    '#   GET,HEAD a.example/v1 → api',
    '#     sends: 1 a request, no retries',
    "#     answer: begins within 3s of the upload's end: timeout cuts 1s in the queue, 1s more for who comes back when told to, 3s at the upstream",
    '#     refused: told to come back within 41s, or when the upstream asks for, if that is later',
    '#     a client that waits 5s: has an answer in time',
    '#   memory: up to 259MiB, beside what Node itself takes and what is being sent',
    '#     64MiB: request bodies kept for retries',
    '#     147MiB: 10000 requests that wait in queues, about 15KiB each',
    '#     25MiB: 100000 clients, about 256B each',
    '#     24MiB: stories of requests, for explanations',
    '#',
    '# tidegate.yaml:2:62 warning: upstreams.api.retry.unkeyedWrites: a write without an idempotency key may take effect twice',
  ]);
  expect(parse(report.text)).toMatchObject({ listen: '127.0.0.1:8080', upstreams: { api: { timeout: '12s' } } });
});

test('of a route that answers checks alone no sends, retries or drains are told', () => {
  const { text } = run(`upstreams: {api: {url: https://a, queue: {maxWait: 2s}}}
routes: [{path: /, upstream: api, check: only}]
clients: {trustedProxies: [127.0.0.1]}
check: {}
drain: {timeout: 5s}
`);
  const [, worst = ''] = text.split('#   / → api\n');
  expect(worst.split('\n').slice(0, 3)).toEqual([
    '#     checks alone: answered within 3s, for which whoever asks has to wait',
    '#     refused: told to come back within 42s, or when the upstream asks for, if that is later',
    expect.stringMatching(/^#   memory: /),
  ]);
  expect(text).not.toContain('warning');
});

test('limits that are nested are told in the order in which requests stand under them', () => {
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
  const from = lines.indexOf('# Limits:');
  expect(lines.slice(from, from + 6)).toEqual([
    '# Limits:',
    '#   api: a request has to pass all that it stands under',
    '#     all requests: one of all together, from 100/s',
    '#     class batch: 20/s, all its clients together',
    '#     endpoint: /v1/{resource} /v1/{resource}/**, one for each resource, from 25/s, at most 30/s',
    '#     write: POST or PUT, one of each client for each method, its rate is learned',
  ]);
});

test('mistakes are all told, and nothing else', () => {
  expect(run('upstreams: {api: {url: a}}\nlissten: x\n')).toEqual({
    exitCode: 1,
    text: `tidegate.yaml:1:24 upstreams.api.url: expected an http or https URL such as https://api.example.com
tidegate.yaml:2:1 lissten: unknown key (did you mean listen?)
`,
  });
});

test('a certificate that serve could not read is a mistake', () => {
  const text = 'upstreams:\n  pay:\n    url: https://a\n    tls: {ca: /nope.pem}\n';
  const readFile = (path: string): string => {
    if (path === 'x.yaml') return text;
    throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
  };
  expect(check('x.yaml', { env: {}, readFile })).toEqual({
    exitCode: 1,
    text: 'x.yaml:4:15 upstreams.pay.tls.ca: cannot be read: no such file\n',
  });
});

test('a file that cannot be read is told in a line', () => {
  const readFile = (): never => {
    throw Object.assign(new Error('EACCES: permission denied, open …'), { code: 'EACCES' });
  };
  expect(check('tidegate.yaml', { env: {}, readFile })).toEqual({
    exitCode: 1,
    text: 'tidegate.yaml: cannot be read: permission denied\n',
  });
});

describe('the worst cases', () => {
  /** Lines of the one route, or of what a test looks for. */
  function told(upstream: string, rest = ''): string[] {
    const { text, exitCode } = run(`${rest}\nupstreams: {api: {url: "https://a", ${upstream}}}\n`);
    expect(exitCode).toBe(0);
    return text.split('\n').flatMap((line) => (line.startsWith('#') ? [line.replace(/^# */, '')] : []));
  }
  const find = (lines: readonly string[], start: string) => lines.find((line) => line.startsWith(start));

  test('an answer that cannot take as long as timeout is told by its parts', () => {
    const lines = told(
      'timeout: 60s, perTryTimeout: 2s, queue: {maxWait: 500ms}, retry: {attempts: 2, retryOn: [reset]}',
    );
    expect(find(lines, 'answer')).toBe(
      "answer: begins within 6.1s of the upload's end (2 × 500ms in the queue, 1s more for who comes back when told to, 2 × 2s at the upstream, 100ms between attempts)",
    );
    expect(find(lines, 'a client')).toBe(
      'a client that waits 5s: may be gone before its answer; only all parts together outlast it',
    );
    expect(find(lines, 'for such')).toBe('for such clients set timeout: 4500ms on the route');
  });

  test('a client that waits 5s is safe where what is advised is set', () => {
    expect(find(told('timeout: 4500ms, perTryTimeout: 2s'), 'a client')).toBe(
      'a client that waits 5s: has an answer in time',
    );
    const observed = told('perTryTimeout: 4500ms', 'mode: observe');
    expect(find(observed, 'a client')).toBe('a client that waits 5s: has an answer in time');
  });

  test('the longest back-off counts, of whatever reason and class', () => {
    const fixed = (interval: string) => `{strategy: fixed, baseInterval: ${interval}}`;
    const retry = `retry: {attempts: 2, retryOn: [reset], backOff: ${fixed('1s')}, backOffFor: {reset: ${fixed('2s')}}}`;
    const between = (lines: string[]) => /(\d+m?s) between attempts/.exec(find(lines, 'answer') ?? '')?.[1];
    expect(between(told(`${retry}, timeout: 1m`))).toBe('2s');
    const classes = `clients: {classes: {batch: {match: {key: [b*]}, backOff: {baseInterval: 9s}}}}`;
    expect(between(told(`${retry}, timeout: 1m`, classes))).toBe('9s');
  });

  test('a backoff that gives up sends no more', () => {
    const givesUp = 'backOff: {strategy: ethernet}';
    const sends = /up to (\d+) a request/.exec(find(told(`retry: {attempts: 100, ${givesUp}}`), 'sends') ?? '')?.[1];
    expect(sends).toBe('16');
  });

  test('a route that takes no writes is not told of them', () => {
    const { text } = run('upstreams: {api: {url: https://a}}\nroutes: [{upstream: api, methods: [GET, PUT]}]');
    expect(text).toContain('may be gone before its answer');
    expect(text).not.toContain('its write');
  });

  test('a write that is finished for a client that has gone is told as such', () => {
    expect(told('retry: {onClientGone: finish}')).toContain(
      'its write with a key is brought to its end, and may be sent again with the same key',
    );
  });

  test.each([
    ['retry: {attempts: 20}', '', 'warning: 20 sends of one request are many: most help comes from the first two'],
    ['retry: {budget: {ratio: 2}}', '', 'warning: a budget ratio of 2 allows more retries than successes'],
    [
      'timeout: 5s',
      '',
      'warning: an attempt that hangs leaves no time for another: perTryTimeout is as long as timeout',
    ],
    ['timeout: 70s', '', 'warning: drain.timeout (25s) is shorter than the longest request: a restart may cut it'],
    [
      'retry: {}',
      'limits: {replayMemory: 2GiB}',
      'warning: that is more than 1GiB: lower limits.replayMemory, clients.maxTracked or queue.maxDepth, or provide it',
    ],
  ])('what is unwise is warned of: %s %s', (upstream, rest, warning) => {
    expect(told(upstream, rest)).toContain(warning);
    expect(told('retry: {}').join()).not.toContain('warning');
  });

  test('a slow least rate tells the refused to come back later', () => {
    expect(find(told('rateLimit: {minRate: 1/m}'), 'refused')).toContain('within 91s,');
  });

  test('limits of single clients are counted where there are some', () => {
    expect(told('rateLimit: {scope: client}')).toContain(
      '489MiB: 100000 limits of single clients or credentials, about 5KiB each',
    );
    expect(find(told('queue: {maxWait: 0}'), '0B')).toBe('0B: 0 requests that wait in queues, about 15KiB each');
  });

  test('a connection over HTTP/2 carries a hundred requests', () => {
    const pem = JSON.stringify(makePem());
    const listen = (http2: boolean) =>
      `listen: {address: localhost:1, tls: {cert: ${pem}, key: ${pem}}, http2: ${http2}}\nlimits: {connections: 10}`;
    const waiting = (rest: string) => told('retry: {}', rest).find((line) => line.includes('requests that wait'));
    expect(waiting(listen(false))).toContain(' 10 requests that wait');
    expect(waiting(listen(true))).toContain(' 1000 requests that wait');
  });

  test('no more requests wait than there may be at a time, over however few connections', () => {
    expect(told('retry: {}', 'limits: {requests: 300}')).toContain(
      '4500KiB: 300 requests that wait in queues, about 15KiB each',
    );
  });

  test('in observe mode nothing waits, is refused or retried', () => {
    const lines = told('retry: {attempts: 9}', 'mode: observe');
    expect(lines).toContain(
      'observe mode: each request is sent once, at once; nothing waits, is refused or retried, whatever is set',
    );
    expect(find(lines, 'sends')).toBe('sends: 1 a request');
    expect(find(lines, 'answer')).toBe("answer: begins within 5s of the upload's end (5s at the upstream)");
    expect(find(lines, 'refused')).toBeUndefined();
    expect(lines).toContain('147MiB: 10000 requests that would wait in queues, about 15KiB each');
  });
});

describe('the figures for memory are measured: what is told is no less, and at most twice as much', () => {
  const COUNT = 30_000;
  const random = seededRandom(1);
  const hash = () => Math.floor(random() * 2 ** 52).toString(16);

  test('a client', () => {
    const before = heldBytes();
    const table = new ClientTable(COUNT, () => undefined);
    for (let i = 0; i < COUNT; i += 1) table.leave(table.enter(`api\0${hash()}`, i));
    const each = (heldBytes() - before) / COUNT;
    expect(table.view(0).tracked).toBe(COUNT);
    expect(each).toBeLessThan(KEPT.client);
    expect(each).toBeGreaterThan(KEPT.client / 2);
  });

  test('a limit of its own', () => {
    const before = heldBytes();
    const upstreams = [upstreamSettings({ scope: 'client' })];
    const store = new MemoryStore({ upstreams, maxTracked: COUNT, random, listen: () => undefined });
    for (let i = 0; i < COUNT / 10; i += 1) {
      const { meter } = store.make({ upstream: 'up', nested: '', scope: 'client', key: hash() });
      meter.accepted(i, meter.sent(i), i + 1); // what is made when first needed is counted
    }
    const each = (heldBytes() - before) / (COUNT / 10);
    expect([...store.limits()]).toHaveLength(COUNT / 10);
    expect(each).toBeLessThan(KEPT.limit);
    expect(each).toBeGreaterThan(KEPT.limit / 2);
  });
});
