/** Files and messages that differ between Linux, macOS and Windows. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeStartError } from '../../../src/cli/describe-start-error.ts';
import { formatListenerQuery } from '../../../src/cli/doctor/check-addresses.ts';
import { readFile } from '../../../src/cli/read-file.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { substitute } from '../../../src/config/load/substitute.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import { atEnd } from '../../support/at-end.ts';

function write(bytes: Buffer | string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-read-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file');
  writeFileSync(path, bytes);
  return path;
}

function load(text: string): Config {
  const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config;
}

describe('a file that an editor of Windows wrote', () => {
  test('is read without its byte order mark', () => {
    expect(readFile(write('\uFEFFsk_live\r\n'))).toBe('sk_live\r\n');
  });

  test.each([
    ['little', Buffer.from('\uFEFFsecret', 'utf16le')],
    ['big', Buffer.from('\uFEFFsecret', 'utf16le').swap16()],
  ])('is refused if it is UTF-16 (%s-endian), with what to do', (_, bytes) => {
    const path = write(bytes);
    const { problems } = substitute(`\${file:${path}}`, { env: {}, readFile });
    expect(problems.map(({ message }) => message)).toEqual([
      `cannot read ${path}: it is UTF-16 text: save it as UTF-8`,
    ]);
  });

  test('configures the proxy with its line breaks', () => {
    expect(Object.keys(load('upstreams:\r\n  api:\r\n    url: http://a.example\r\n').upstreams)).toEqual(['api']);
  });
});

test.each([
  ['/run/key', '/run/key'],
  ['C:/keys/a', 'C:/keys/a'],
  [String.raw`C:\keys\a`, String.raw`C:\keys\a`],
  [String.raw`\\server\keys\a`, String.raw`\\server\keys\a`],
])('a file reference to %s names an absolute path', (written, path) => {
  const readPath = (name: string): string => `content of ${name}\r\n`;
  expect(substitute(`\${file:${written}}`, { env: {}, readFile: readPath }).text).toBe(`content of ${path}`);
});

test.each(['keys/a', 'C:keys', 'C:', ''])(
  'a file reference to %j is refused, because it is no absolute path',
  (written) => {
    const { problems } = substitute(`\${file:${written}}`, { env: {}, readFile: () => 'content' });
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining(`expected \${NAME} or \${file:/path}`),
    ]);
  },
);

describe('a Unix socket that cannot be created', () => {
  const describeOn = (platform: NodeJS.Platform, code: string): Promise<string> => {
    const error = Object.assign(new Error(code), { code, syscall: 'listen', address: '/run/a.sock', port: -1 });
    return describeStartError(error, load('upstreams: {api: {url: "http://a.example"}}'), {}, platform);
  };

  test.each([
    ['win32', 'EACCES', 'Windows has no Unix sockets for servers of Node; set an address such as 127.0.0.1:8080'],
    ['darwin', 'EINVAL', 'the path of a Unix socket is at most 103 bytes here'],
    ['linux', 'EACCES', 'its folder must exist and be writable by this user'],
  ] as const)('is explained on %s', async (platform, code, text) => {
    expect(await describeOn(platform, code)).toContain(text);
  });
});

test.each([
  ['linux', "ss -ltnp 'sport = :80'", 'ss -lxp | grep /run/a'],
  ['darwin', 'lsof -nP -iTCP:80 -sTCP:LISTEN', 'lsof /run/a'],
  ['win32', 'netstat -ano | findstr :80', 'netstat -ano'],
] as const)('doctor names a command of %s that shows who listens', (platform, tcp, unix) => {
  expect(formatListenerQuery({ kind: 'tcp', host: '::', port: 80 }, platform)).toBe(tcp);
  expect(formatListenerQuery({ kind: 'unix', path: '/run/a' }, platform)).toBe(unix);
});
