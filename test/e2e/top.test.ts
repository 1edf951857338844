import { stripVTControlCharacters } from 'node:util';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { run } from '../support/process.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PATIENCE = 20_000;
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
  /** All that was written to it. */
  readonly written: () => string;
  /** What the last whole frame shows. */
  readonly screen: () => string;
  readonly ended: Promise<number | null>;
}

/** On a terminal of its own, of util-linux's `script`, which passes on the exit code. */
function startOnTerminal(args: readonly string[], { columns = 100, rows = 30, env = {} } = {}): Terminal {
  const command = `stty cols ${columns} rows ${rows}; exec '${process.execPath}' src/main.ts ${args.join(' ')}`;
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
  test('shows what is, live, and leaves the terminal as it was', async () => {
    const tidegate = await start();
    const { child, screen, written, ended } = startOnTerminal(['top', '--admin', String(tidegate.adminUrl)]);
    await eventually(screen, (text) => text.includes('● payments: no limit felt'), PATIENCE);
    expect(written()).toContain(ENTERED);
    await eventually(screen, (text) => text.includes('Clients: 1 of 1'), PATIENCE);
    await fetch(tidegate.url, { headers: { 'x-api-key': 'another' } });
    await eventually(screen, (text) => text.includes('Clients: 2 of 2'), PATIENCE);
    child.stdin.write('q');
    expect(await ended).toBe(0);
    expect(written().endsWith(LEFT)).toBe(true);
  });

  test.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])('is left with %s as well', async (_, key) => {
    const tidegate = await start();
    const { child, screen, written, ended } = startOnTerminal(['top', '--admin', String(tidegate.adminUrl)]);
    await eventually(screen, (text) => text.includes('payments'), PATIENCE);
    child.stdin.write(key);
    expect(await ended).toBe(0);
    expect(written().endsWith(LEFT)).toBe(true);
  });

  test('fits into it, and colours nothing where NO_COLOR says so', async () => {
    const tidegate = await start();
    const args = ['top', '--admin', String(tidegate.adminUrl)];
    const { screen, written } = startOnTerminal(args, { columns: 44, rows: 12, env: { NO_COLOR: '1' } });
    const shown = await eventually(screen, (text) => text.includes('payments'), PATIENCE);
    const lines = shown.split(/\r*\n/);
    expect(lines.length).toBeLessThanOrEqual(12);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(44);
    // oxlint-disable-next-line no-control-regex -- that is what is looked for
    expect(written()).not.toMatch(/\x1b\[[1-9]\d*(;\d+)*m/);
  });

  test('says that the connection is lost, and goes on when it is back', async () => {
    const first = await start();
    const { host } = new URL(String(first.adminUrl));
    const { screen } = startOnTerminal(['top', '--admin', host]);
    await eventually(screen, (text) => text.includes('Clients: 1 of 1'), PATIENCE);
    await first.close();
    await eventually(screen, (text) => /■ Connection lost .*trying again in/.test(text), PATIENCE);
    await start(host);
    const back = await eventually(screen, (text) => !text.includes('Connection lost'), PATIENCE);
    expect(back).toContain('payments');
  });
});

describe('where there is no terminal', () => {
  test('it prints one frame without colours, and ends', async () => {
    const tidegate = await start();
    const { code, stdout, stderr } = await run(['top', '--admin', String(tidegate.adminUrl)]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Tidegate test {2}● ready/);
    expect(stdout).toMatch(/^payments +● open +no limit/m);
    expect(stdout).not.toContain('\x1b');
  });

  test('it finds the port by TIDEGATE_ADMIN, and shows the token of TIDEGATE_ADMIN_TOKEN', async () => {
    const tidegate = await start(`{listen: "0.0.0.0:0", token: ${TOKEN}}`);
    const { port } = new URL(String(tidegate.adminUrl));
    const admin = `0.0.0.0:${port}`;
    const denied = await run(['top', '--once'], { TIDEGATE_ADMIN: admin });
    expect(denied).toMatchObject({ code: 1, stdout: '' });
    expect(denied.stderr).toContain('asks for its admin token: --token TOKEN, or TIDEGATE_ADMIN_TOKEN');
    const wrong = await run(['top', '--token', 'open barley open'], { TIDEGATE_ADMIN: admin });
    expect(wrong.stderr).toContain('does not accept this token');
    const shown = await run(['top'], { TIDEGATE_ADMIN: admin, TIDEGATE_ADMIN_TOKEN: TOKEN });
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('payments');
  });
});

describe('what cannot work is told in one line', () => {
  test('nobody answers there', async () => {
    const { code, stderr } = await run(['top', '--admin', '127.0.0.1:9']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidegate: no answer from http:\/\/127\.0\.0\.1:9 \(.+\): does Tidegate run there\?.*\n$/);
  });

  test('somebody else answers there', async () => {
    const upstream = await startUpstream();
    const { code, stderr } = await run(['top', '--admin', upstream.url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidegate: .* does not answer as the admin port of a Tidegate does.*\n$/);
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
