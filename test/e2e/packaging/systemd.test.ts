/** The unit of systemd, the files beside it, and the messages to systemd. docs/service.md describes them. */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { builtPackage } from '../../support/programs/built-program.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-systemd-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const SYSTEM_FILES = [
  '/etc/default/tidegate',
  '/etc/tidegate/tidegate.yaml',
  '/usr/bin/tidegate',
  '/usr/lib/systemd/system/tidegate.service',
  '/usr/lib/sysusers.d/tidegate.conf',
  '/usr/share/bash-completion/completions/tidegate',
  '/usr/share/fish/vendor_completions.d/tidegate.fish',
  '/usr/share/man/man1/tidegate.1',
  '/usr/share/zsh/vendor-completions/_tidegate',
];

function install(root: string, { node = process.execPath, from = builtPackage() } = {}) {
  const script = join(from, 'config/systemd/install.sh');
  return spawnSync('sh', [script], {
    env: { PATH: process.env['PATH'], DESTDIR: root, NODE: node },
    encoding: 'utf8',
  });
}

test('installs each file at its place, and keeps a configuration that is there', () => {
  const root = makeFolder();
  expect(install(root)).toMatchObject({ status: 0, stdout: '', stderr: '' });
  const library = '/usr/lib/tidegate';
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
  expect(files.filter((path) => !path.startsWith(`${library}/`)).toSorted()).toEqual(SYSTEM_FILES);
  const page = readFileSync('docs/service.md', 'utf8');
  for (const path of [...SYSTEM_FILES, library]) expect(page).toContain(`\`${path}\``);
  const { stdout } = spawnSync(process.execPath, [join(root, library, 'dist/main.js'), 'version'], {
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(readFileSync(join(root, '/usr/bin/tidegate'), 'utf8')).toBe(
    `#!/bin/sh\nexec ${process.execPath} /usr/lib/tidegate/dist/main.js "$@"\n`,
  );
  expect(statSync(join(root, '/etc/tidegate/tidegate.yaml')).mode & 0o777).toBe(0o640);

  writeFileSync(join(root, '/etc/tidegate/tidegate.yaml'), 'of the operator\n');
  expect(install(root).status).toBe(0);
  expect(readFileSync(join(root, '/etc/tidegate/tidegate.yaml'), 'utf8')).toBe('of the operator\n');
});

test('stops before it writes anything if Node cannot run the program', () => {
  const root = makeFolder();
  expect(install(root, { node: '/bin/false' }).status).toBe(1);
  expect(readdirSync(root)).toEqual([]);
});

test('installs each folder of config, and no file that is not part of the package', () => {
  const from = makeFolder();
  cpSync(builtPackage(), from, { recursive: true });
  const root = makeFolder();
  writeFileSync(join(from, 'config/own.yaml'), 'secret: of-the-operator', { mode: 0o600 });
  expect(install(root, { from })).toMatchObject({ status: 0, stderr: '' });
  const library = join(root, 'usr/lib/tidegate');
  expect(readdirSync(join(library, 'config')).toSorted()).toEqual(readdirSync('config').toSorted());
  expect(readdirSync(join(root, 'usr/lib'))).not.toContain('tidegate.new');

  // The copy of the script would remove what it copies.
  const again = install(root, { from: library });
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining('is the installed program')]);
  expect(readdirSync(library).toSorted()).toEqual(['config', 'dist', 'package.json']);
});

if (process.platform === 'linux') {
  test('systemd finds no mistake in the unit, and few privileges', () => {
    const root = makeFolder();
    install(root);
    const unit = readFileSync(join(root, '/usr/lib/systemd/system/tidegate.service'), 'utf8');
    const copy = join(makeFolder(), 'tidegate.service');
    writeFileSync(copy, unit.replace('/usr/bin/tidegate', join(root, '/usr/bin/tidegate')));
    const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, copy], { encoding: 'utf8' });
    expect(analyze('verify', '--man=no')).toMatchObject({ status: 0, stdout: '', stderr: '' });
    // From 0 to 100: the exposure that systemd computes. 25 leaves 0.4 for the rules of later versions.
    expect(analyze('security', '--offline=yes', '--threshold=25').status).toBe(0);
  });

  /** A socket of datagrams, as that of systemd. @returns all messages so far */
  function listenAsSystemd(path: string): () => string {
    const child = spawn('socat', ['-u', `UNIX-RECV:${path}`, 'STDOUT'], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let received = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (received += text));
    return () => received;
  }

  const ARGS = ['serve', '--upstream', 'http://127.0.0.1:1', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];

  async function openSystemd(): Promise<{ readonly socket: string; readonly received: () => string }> {
    const socket = join(makeFolder(), 'notify');
    const received = listenAsSystemd(socket);
    await eventually(
      () => statSync(socket, { throwIfNoEntry: false }),
      (stats) => stats !== undefined,
    );
    return { socket, received };
  }

  test('reports that it is ready, that it is alive, and how long it takes to stop', async () => {
    const { socket, received } = await openSystemd();
    const gate = startProcess(ARGS, { env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '300000' } });
    await eventually(received, (text) => (text.match(/WATCHDOG=1/g) ?? []).length >= 3);
    expect(received()).toMatch(/^READY=1/);
    expect(gate.log().some(({ msg }) => msg === 'listening')).toBe(true);
    gate.child.kill('SIGINT');
    const { code, stderr } = await gate.ended;
    expect([code, stderr]).toEqual([0, '']);
    // drain.delay, drain.timeout and 5 s.
    await eventually(received, (text) => text.includes('STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000'));
    expect(gate.log().filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('drains on a signal that arrives as soon as it listens, however long the notifier takes to load', async () => {
    const folder = makeFolder();
    const hook = join(folder, 'slow-load.mjs');
    // While the module is awaited, the process has the default action of the signal.
    writeFileSync(
      hook,
      `import { registerHooks } from 'node:module';
      registerHooks({
        load(url, context, next) {
          if (url.includes('systemd-notifier')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
          return next(url, context);
        },
      });`,
    );
    const env = { NOTIFY_SOCKET: join(folder, 'nowhere'), NODE_OPTIONS: `--import ${hook}` };
    const gate = startProcess(ARGS, { env });
    await eventually(gate.log, (lines) => lines.some(({ msg }) => msg === 'listening'));
    gate.child.kill('SIGINT');
    expect((await gate.ended).code).toBe(0);
    expect(gate.log().some(({ msg }) => msg === 'stopped')).toBe(true);
  });

  test('sends no sign of life to the watchdog of another process', async () => {
    const { socket, received } = await openSystemd();
    const env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '3000', WATCHDOG_PID: '1' };
    const gate = startProcess(ARGS, { env });
    await eventually(received, (text) => text.includes('READY=1'));
    gate.child.kill('SIGINT');
    await gate.ended;
    await eventually(received, (text) => text.includes('STOPPING=1'));
    expect(received()).not.toContain('WATCHDOG=1');
  });

  test('serves without the program systemd-notify, and logs once that systemd is not notified', async () => {
    const env = { NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '3000', PATH: '/nowhere' };
    const gate = startProcess(ARGS, { env });
    await eventually(gate.log, (lines) =>
      lines.some(({ msg }) => String(msg).startsWith('systemd cannot be notified')),
    );
    gate.child.kill('SIGINT');
    expect((await gate.ended).code).toBe(0);
    const failures = gate.log().filter(({ level }) => level === 'error');
    expect(failures).toMatchObject([{ why: expect.stringContaining('ENOENT') as string }]);
  });
}
