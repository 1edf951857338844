import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { check } from '../../src/cli/check.ts';

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
    '#   / → api: 4 sends a request, 12s until its response begins, 64KiB kept for retries',
    '#   GET,HEAD a.example/v1 → api: 1 send a request, 3s until its response begins, 1KiB kept for retries',
    '#   in all: 64MiB of request bodies kept for retries',
    '#',
    '# tidegate.yaml:2:62 warning: upstreams.api.retry.unkeyedWrites: a write without an idempotency key may take effect twice',
  ]);
  expect(parse(report.text)).toMatchObject({ listen: '127.0.0.1:8080', upstreams: { api: { timeout: '12s' } } });
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
