/** `tidegate clients`: keys in a file of hashes. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runClients, type ClientsResult } from '../../../src/cli/clients/clients-command.ts';
import { parseArguments } from '../../../src/cli/parse-arguments.ts';
import { apiKeyId, hashApiKey } from '../../../src/config/auth/api-key.ts';
import { parseKeyFile } from '../../../src/config/auth/key-file.ts';
import { atEnd } from '../../support/at-end.ts';

const NOW = new Date('2026-11-30T10:00:00.500Z');

function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-clients-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'keys');
  const run = (...args: readonly string[]): ClientsResult => {
    const command = parseArguments(['clients', ...args, ...(args.includes('--file') ? [] : ['--file', file])]);
    if (command.kind !== 'clients') throw new Error(JSON.stringify(command));
    return runClients(command, NOW);
  };
  return { folder, file, run, text: () => readFileSync(file, 'utf8') };
}

describe('clients add', () => {
  test('prints the key once, and stores its hash', () => {
    const { run, text, file } = setUp();
    const { text: printed, remarks, exitCode } = run('add', 'shop');
    const key = printed.trim();
    const id = apiKeyId(key);
    expect(exitCode).toBe(0);
    expect(remarks).toBe(`added key ${id} of shop; it is not shown again\n`);
    expect(parseKeyFile(text())).toEqual([
      { id, hash: hashApiKey(key), createdAt: '2026-11-30T10:00:00Z', client: 'shop' },
    ]);
    expect(text()).not.toContain(key.slice(16));
    expect(statSync(file).mode & 0o027).toBe(0);
    expect(JSON.parse(run('add', 'shop', '--json').text)).toMatchObject({ client: 'shop' });
    expect(parseKeyFile(text())).toHaveLength(2);
  });

  test('adds a line feed that an editor has left out, and changes no file of another kind', () => {
    const { run, text, file } = setUp();
    writeFileSync(file, '# mine');
    expect(run('add', 'shop').exitCode).toBe(0);
    expect(text()).toMatch(/^# mine\n[0-9a-f]{12} /);
    writeFileSync(file, 'upstreams: {}\n');
    const { remarks, exitCode } = run('add', 'shop');
    expect([remarks.replace(file, 'FILE'), exitCode]).toEqual([
      'tidegate: FILE: line 1: expected the id, sha256:HASH, the time and the client of a key\n',
      1,
    ]);
    expect(text()).toBe('upstreams: {}\n');
  });
});

test('clients list prints no hash', () => {
  const { run } = setUp();
  const id = apiKeyId(run('add', 'shop').text.trim());
  expect(run('list').text).toBe(
    `id            created               expires               client\n${id}  2026-11-30T10:00:00Z  never                 shop\n`,
  );
  expect(JSON.parse(run('list', '--json').text)).toEqual({
    keys: [{ id, client: 'shop', createdAt: '2026-11-30T10:00:00Z' }],
  });
});

describe('clients add --expires', () => {
  test.each([
    ['90d', '2027-02-28T10:00:00Z'],
    ['12h', '2026-11-30T22:00:00Z'],
    ['2027-06-30', '2027-06-30T00:00:00Z'],
  ])('%s stores the time, and list shows it', (expires, expiresAt) => {
    const { run, text } = setUp();
    const { text: printed, remarks } = run('add', 'shop', '--expires', expires);
    const id = apiKeyId(printed.trim());
    expect(remarks).toBe(`added key ${id} of shop, which expires at ${expiresAt}; it is not shown again\n`);
    expect(parseKeyFile(text())).toMatchObject([{ id, createdAt: '2026-11-30T10:00:00Z', expiresAt, client: 'shop' }]);
    expect(run('list').text).toContain(`${id}  2026-11-30T10:00:00Z  ${expiresAt}  shop\n`);
    expect(JSON.parse(run('list', '--json').text)).toMatchObject({ keys: [{ id, expiresAt }] });
    expect(JSON.parse(run('add', 'shop', '--json', '--expires', expires).text)).toMatchObject({ expiresAt });
  });

  test('refuses a date that is over, and writes nothing', () => {
    const { run, file } = setUp();
    const { remarks, exitCode } = run('add', 'shop', '--expires', '2026-11-30');
    expect([remarks, exitCode]).toEqual(['tidegate: --expires 2026-11-30T00:00:00Z is over already\n', 1]);
    expect(existsSync(file)).toBe(false);
  });

  test.each(['90', '0d', '1.5d', '2027-02-30', 'tomorrow', '99999d'])('refuses %s', (expires) => {
    const command = parseArguments(['clients', 'add', 'shop', '--file', 'keys', '--expires', expires]);
    expect(command).toMatchObject({ kind: 'usage-error' });
    expect(JSON.stringify(command)).toContain('--expires expects days or hours such as 90d or 12h');
  });

  test('is for add alone', () => {
    const command = parseArguments(['clients', 'list', '--file', 'keys', '--expires', '90d']);
    expect(JSON.stringify(command)).toContain('clients list takes no --expires');
  });
});

test('clients list marks keys that have expired', () => {
  const { run, text, file } = setUp();
  run('add', 'shop', '--expires', '90d');
  writeFileSync(file, text().replace('expires:2027-02-28', 'expires:2026-11-29'));
  expect(run('list').text).toMatch(/2026-11-29T10:00:00Z {2}shop \(expired\)\n/);
});

describe('clients remove', () => {
  test('removes one key by its id, or all of a client, and keeps the rest of the file', () => {
    const { run, text, file, folder } = setUp();
    const [first, second] = [run('add', 'shop'), run('add', 'shop')].map((added) => apiKeyId(added.text.trim()) ?? '');
    const third = apiKeyId(run('add', 'till').text.trim());
    chmodSync(file, 0o600);
    expect(run('remove', first ?? '').text).toBe(`removed key ${first}\n`);
    expect(parseKeyFile(text()).map(({ id }) => id)).toEqual([second, third]);
    expect(JSON.parse(run('remove', 'shop', '--json').text)).toEqual({ removed: [second] });
    expect(text()).toMatch(/^# Hashes/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['keys']);
  });

  test('keeps the permissions of the file, whatever the umask is, and a symbolic link to it', () => {
    const { run, text, file, folder } = setUp();
    run('add', 'shop');
    chmodSync(file, 0o666); // the usual umask would take the permissions to write
    const link = join(folder, 'link');
    symlinkSync('keys', link);
    expect(run('remove', 'shop', '--file', link).exitCode).toBe(0);
    expect(parseKeyFile(text())).toEqual([]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o666);
    expect(readdirSync(folder)).toEqual(['keys', 'link']);
  });

  test('fails for a name that has no key', () => {
    const { run, file } = setUp();
    run('add', 'shop');
    expect(run('remove', 'shops')).toEqual({
      text: '',
      remarks: `tidegate: ${file} has no key of a client 'shops', and none with this id\n`,
      exitCode: 1,
    });
  });
});

test('clients fails for a file that does not exist', () => {
  const { run, file } = setUp();
  expect(run('list')).toEqual({ text: '', remarks: `tidegate: ${file}: no such file\n`, exitCode: 1 });
});

test.each([
  [['clients'], 'clients needs an action: add, list or remove'],
  [['clients', 'ad', '--file', 'f'], "clients has no action 'ad' (did you mean add?)"],
  [['clients', 'add', 'shop'], 'clients add needs --file FILE: clients.auth.apiKeys.file'],
  [['clients', 'add', '--file', 'f'], 'clients add needs a NAME'],
  [['clients', 'remove', '--file', 'f'], 'clients remove needs a NAME or an ID'],
  [['clients', 'list', 'shop', '--file', 'f'], "clients list takes no 'shop'"],
  [['clients', 'add', 'a', 'b', '--file', 'f'], 'clients add takes one NAME'],
  [['clients', 'add', 'a b', '--file', 'f'], 'a name has 1 to 128 printable ASCII characters, without spaces'],
])('tidegate %s', (args, message) => {
  expect(parseArguments(args)).toEqual({ kind: 'usage-error', message, command: 'clients' });
});
