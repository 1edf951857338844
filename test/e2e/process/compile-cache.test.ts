import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { run, startProcess } from '../../support/proxy/process.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
const REFUSED = 'TIDEGATE_CACHE cannot be used: starts take longer';

/** Creates a folder that only this user can access, and removes it when the test ends. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-cache-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Returns the names of all files below `folder`, recursively. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).flatMap((entry) =>
    entry.isFile() ? [entry.name] : [],
  );
}

async function expectVersion(env: NodeJS.ProcessEnv): Promise<void> {
  const { code, stdout, stderr } = await run(['version'], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
}

describe('compiled code is cached', () => {
  test('by a proxy, before it is killed', async () => {
    const folder = join(makeFolder(), 'made', 'here');
    const upstream = await startUpstream();
    const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], { env: { TIDEGATE_CACHE: folder } });
    await eventually(
      () => (existsSync(folder) ? filesIn(folder) : []),
      (files) => files.length > 10,
    );
    expect(running.log().map(({ msg }) => msg)).not.toContain(REFUSED);
    running.child.kill('SIGKILL');
    await running.ended;
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test.each(['/proc/none', '/proc/none/below', '/sys/none', '/dev/null/below'])(
    'except in %s, which cannot be created: the proxy logs it and starts',
    async (folder) => {
      const upstream = await startUpstream();
      const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], { env: { TIDEGATE_CACHE: folder } });
      const logged = await eventually(
        () => running.log().map(({ msg }) => msg),
        (messages) => messages.includes('listening'),
      );
      expect(logged).toContain(REFUSED);
      running.child.kill('SIGKILL');
      await running.ended;
    },
  );

  test('in the temporary folder, readable by its user only', async () => {
    const folder = makeFolder();
    await expectVersion({ TMPDIR: folder });
    const [name, ...others] = readdirSync(folder);
    expect(name).toMatch(/^tidegate-/);
    expect(others).toEqual([]);
    expect(statSync(join(folder, String(name))).mode & 0o777).toBe(0o700);
    expect(filesIn(folder)).not.toEqual([]);
  });

  test('unless TIDEGATE_CACHE is off', async () => {
    const folder = makeFolder();
    await expectVersion({ TMPDIR: folder, TIDEGATE_CACHE: 'off' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('a cache folder that cannot be created', () => {
  test('does not affect a command', () => expectVersion({ TIDEGATE_CACHE: '/dev/null/cache' }));

  test('is logged by the proxy, which serves', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], {
      env: { TIDEGATE_CACHE: '/dev/null/cache' },
    });
    const log = await eventually(running.log, (lines) => lines.some(({ msg }) => msg === REFUSED));
    const url = log.find(({ msg }) => msg === 'listening')?.['url'];
    expect((await fetch(String(url))).status).toBe(200);
  });

  test('is ignored when TMPDIR is invalid', () => expectVersion({ TMPDIR: '/dev/null' }));
});

describe('a folder that other users can write to is not used', () => {
  const unsafeFolders: [string, (folder: string) => void][] = [
    ['it is world-writable', (folder) => chmodSync(folder, 0o777)],
    ['it is world-writable and sticky', (folder) => chmodSync(folder, 0o1777)],
    ['it is group-writable', (folder) => chmodSync(folder, 0o770)],
    ['its parent is world-writable', (folder) => chmodSync(join(folder, '..'), 0o777)],
    ['a folder in it is world-writable', (folder) => makeOpen(join(folder, 'v24'))],
    ['a folder in it is a symbolic link', (folder) => symlinkSync(makeFolder(), join(folder, 'v24'))],
    // Only root can change an owner.
    ...(process.getuid?.() === 0
      ? [['it belongs to another user', giveAway] satisfies [string, (folder: string) => void]]
      : []),
  ];

  test.each(unsafeFolders)('when %s', async (_, spoil) => {
    const folder = join(makeFolder(), 'cache');
    mkdirSync(folder);
    spoil(folder);
    await expectVersion({ TIDEGATE_CACHE: folder });
    expect(filesIn(folder)).toEqual([]);
  });

  test('when it already exists in the temporary folder', async () => {
    const folder = makeFolder();
    const own = join(folder, `tidegate-${process.getuid?.()}`);
    makeOpen(own);
    await expectVersion({ TMPDIR: folder });
    expect(readdirSync(own)).toEqual([]);
  });
});

function makeOpen(folder: string): void {
  mkdirSync(folder);
  chmodSync(folder, 0o777);
}

function giveAway(folder: string): void {
  chownSync(folder, 4242, 4242);
}
