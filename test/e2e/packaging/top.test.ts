import { stripVTControlCharacters } from 'node:util';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { run } from '../../support/proxy/process.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TOKEN = 'open sesame open';

async function start(admin = '127.0.0.1:0'): Promise<Tidegate> {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
admin: ${admin}
clients: {key: [header:x-api-key]}
upstreams: {payments: {url: "${upstream.url}"}}
`);
  await fetch(tidegate.url, { headers: { 'x-api-key': 'shop' } });
  return tidegate;
}

interface Terminal {
  readonly child: ChildProcessWithoutNullStreams;
  /** All output written to the terminal. */
  readonly written: () => string;
  /** The text of the last frame. */
  readonly screen: () => string;
  readonly ended: Promise<number | null>;
}

/** Runs it on a pseudoterminal of util-linux's `script`, which returns its exit code. */
function startOnTerminal(args: readonly string[], { columns = 100, rows = 30, env = {} } = {}): Terminal {
  const command = `stty cols ${columns} rows ${rows}; exec '${process.execPath}' '${builtProgram('main')}' ${args.join(' ')}`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], TERM: 'xterm', ...env },
    stdio: 'pipe',
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let written = '';
  child.stdout.on('data', (chunk: Buffer) => (written += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  const screen = (): string => stripVTControlCharacters(written.split('\x1b[?2026h').at(-1) ?? '');
  return { child, written: () => written, screen, ended };
}

const ENTERED = '\x1b[?1049h';
const LEFT = '\x1b[?7h\x1b[?25h\x1b[?1049l';

describe('tidegate top on a terminal', () => {
  test('shows live status, and restores the terminal on exit', async () => {
    const tidegate = await start();
    const { child, screen, written, ended } = startOnTerminal(['top', '--admin', String(tidegate.adminUrl)]);
    await eventually(screen, (text) => text.includes('● payments: no limit detected'));
    expect(written()).toContain(ENTERED);
    await eventually(screen, (text) => text.includes('Clients: 1 of 1'));
    await fetch(tidegate.url, { headers: { 'x-api-key': 'another' } });
    await eventually(screen, (text) => text.includes('Clients: 2 of 2'));
    child.stdin.write('q');
    expect(await ended).toBe(0);
    expect(written().endsWith(LEFT)).toBe(true);
  });

  test.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])('exits on %s', async (_, key) => {
    const tidegate = await start();
    const { child, screen, written, ended } = startOnTerminal(['top', '--admin', String(tidegate.adminUrl)]);
    await eventually(screen, (text) => text.includes('payments'));
    child.stdin.write(key);
    expect(await ended).toBe(0);
    expect(written().endsWith(LEFT)).toBe(true);
  });

  test('fits the terminal size, and prints no colours when NO_COLOR is set', async () => {
    const tidegate = await start();
    const args = ['top', '--admin', String(tidegate.adminUrl)];
    const { screen, written } = startOnTerminal(args, { columns: 44, rows: 12, env: { NO_COLOR: '1' } });
    const shown = await eventually(screen, (text) => text.includes('payments'));
    const lines = shown.split(/\r*\n/);
    expect(lines.length).toBeLessThanOrEqual(12);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(44);
    // oxlint-disable-next-line no-control-regex -- the test looks for colour codes
    expect(written()).not.toMatch(/\x1b\[[1-9]\d*(;\d+)*m/);
  });

  test('shows that the connection is lost, and reconnects', async () => {
    const first = await start();
    const { host } = new URL(String(first.adminUrl));
    const { screen } = startOnTerminal(['top', '--admin', host]);
    await eventually(screen, (text) => text.includes('Clients: 1 of 1'));
    await first.close();
    await eventually(screen, (text) => /■ Connection lost .*retrying in/.test(text));
    await start(host);
    const back = await eventually(screen, (text) => !text.includes('Connection lost'));
    expect(back).toContain('payments');
  });
});

describe('tidegate top without a terminal', () => {
  test('prints one frame without colours and exits', async () => {
    const tidegate = await start();
    const { code, stdout, stderr } = await run(['top', '--admin', String(tidegate.adminUrl)]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Tidegate test {2}● ready/);
    expect(stdout).toMatch(/^payments +● open +no limit/m);
    expect(stdout).not.toContain('\x1b');
    expect(stdout, 'all figures').toMatch(/^requests .* unknown 0 .* p99 to clients \S+( ms| s)?$/m);
    expect(stdout, 'all columns').toMatch(/^upstream .* upstream p50$/m);
  });

  test('reads the admin address from TIDEGATE_ADMIN, and the token from TIDEGATE_ADMIN_TOKEN', async () => {
    const tidegate = await start(`{listen: "0.0.0.0:0", token: ${TOKEN}}`);
    const { port } = new URL(String(tidegate.adminUrl));
    const admin = `0.0.0.0:${port}`;
    const denied = await run(['top', '--once'], { TIDEGATE_ADMIN: admin });
    expect(denied).toMatchObject({ code: 1, stdout: '' });
    expect(denied.stderr).toContain('requires the admin token: set --token TOKEN or TIDEGATE_ADMIN_TOKEN');
    const wrong = await run(['top', '--token', 'open barley open'], { TIDEGATE_ADMIN: admin });
    expect(wrong.stderr).toContain('rejects this token');
    const shown = await run(['top'], { TIDEGATE_ADMIN: admin, TIDEGATE_ADMIN_TOKEN: TOKEN });
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('payments');
  });
});

describe('an error is reported in one line', () => {
  test('the admin port does not respond', async () => {
    const { code, stderr } = await run(['top', '--admin', '127.0.0.1:9']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidegate: no response from http:\/\/127\.0\.0\.1:9 \(.+\): is Tidegate running\?.*\n$/);
  });

  test('another server responds', async () => {
    const upstream = await startUpstream();
    const { code, stderr } = await run(['top', '--admin', upstream.url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidegate: .* is not the admin port of Tidegate.*\n$/);
  });

  test.each([
    [['--admin', 'unix:/run/tidegate.sock'], 'is a Unix socket'],
    [['--admin', 'htp://127.0.0.1:1'], 'did you mean http?'],
    [['127.0.0.1:9901'], 'did you mean --admin 127.0.0.1:9901?'],
    [['--tokn', 'x'], 'did you mean --token?'],
  ])('%j', async (args, message) => {
    const { code, stderr } = await run(['top', ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});
