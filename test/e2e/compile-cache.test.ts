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
import { run, startProcess } from '../support/process.ts';
import { eventually, startUpstream } from '../support/tidegate.ts';

const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
const REFUSED = 'TIDEGATE_CACHE cannot be used: starts take longer';

/** Of this user alone. Removed when the test ends. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-cache-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Files below it, however deep. */
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

describe('what was compiled is kept', () => {
  test('by a proxy that is killed later', async () => {
    const folder = join(makeFolder(), 'made', 'here');
    const upstream = await startUpstream();
    const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], { env: { TIDEGATE_CACHE: folder } });
    await eventually(
      () => (existsSync(folder) ? filesIn(folder) : []),
      (files) => files.length > 10,
      20_000,
    );
    expect(running.log().map(({ msg }) => msg)).not.toContain(REFUSED);
    running.child.kill('SIGKILL');
    await running.ended;
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test.each(['/proc/none', '/proc/none/below', '/sys/none', '/dev/null/below'])(
    'not in %s, which cannot be made: a line says so, and the start goes on',
    async (folder) => {
      const upstream = await startUpstream();
      const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], { env: { TIDEGATE_CACHE: folder } });
      const said = await eventually(
        () => running.log().map(({ msg }) => msg),
        (messages) => messages.includes('listening'),
        20_000,
      );
      expect(said).toContain(REFUSED);
      running.child.kill('SIGKILL');
      await running.ended;
    },
  );

  test('in the temporary folder, for nobody else to read', async () => {
    const folder = makeFolder();
    await expectVersion({ TMPDIR: folder });
    const [name, ...others] = readdirSync(folder);
    expect(name).toMatch(/^tidegate-/);
    expect(others).toEqual([]);
    expect(statSync(join(folder, String(name))).mode & 0o777).toBe(0o700);
    expect(filesIn(folder)).not.toEqual([]);
  });

  test('not where it is off', async () => {
    const folder = makeFolder();
    await expectVersion({ TMPDIR: folder, TIDEGATE_CACHE: 'off' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('a folder that cannot be made does no harm', () => {
  test('to a command', () => expectVersion({ TIDEGATE_CACHE: '/dev/null/cache' }));

  test('to the proxy, which tells of it', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], {
      env: { TIDEGATE_CACHE: '/dev/null/cache' },
    });
    const log = await eventually(running.log, (lines) => lines.some(({ msg }) => msg === REFUSED), 20_000);
    const url = log.find(({ msg }) => msg === 'listening')?.['url'];
    expect((await fetch(String(url))).status).toBe(200);
  });

  test('nor does a temporary folder', () => expectVersion({ TMPDIR: '/dev/null' }));
});

describe('a folder that others can put code into is not used', () => {
  const strangers: [string, (folder: string) => void][] = [
    ['everybody may write to it', (folder) => chmodSync(folder, 0o777)],
    ['everybody may write to it, and it is sticky', (folder) => chmodSync(folder, 0o1777)],
    ['its group may', (folder) => chmodSync(folder, 0o770)],
    ['everybody may replace it', (folder) => chmodSync(join(folder, '..'), 0o777)],
    ['what is in it is open', (folder) => makeOpen(join(folder, 'v24'))],
    ['what is in it leads elsewhere', (folder) => symlinkSync(makeFolder(), join(folder, 'v24'))],
    // Only root can give something away.
    ...(process.getuid?.() === 0
      ? [['it is another user’s', giveAway] satisfies [string, (folder: string) => void]]
      : []),
  ];

  test.each(strangers)('where %s', async (_, spoil) => {
    const folder = join(makeFolder(), 'cache');
    mkdirSync(folder);
    spoil(folder);
    await expectVersion({ TIDEGATE_CACHE: folder });
    expect(filesIn(folder)).toEqual([]);
  });

  test('in the temporary folder: somebody was there before', async () => {
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
