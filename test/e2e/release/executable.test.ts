import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { builtPackage } from '../../support/programs/built-program.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const ROOT = join(import.meta.dirname, '../../..');
const place = mkdtempSync(join(tmpdir(), 'tidegate-executable-test-'));
const executable = join(place, 'tidegate');
/** Only a hang reaches it. */
const TIMEOUT_MS = 100_000;

// As docs/package.md, with a package that is already built.
beforeAll(() => {
  const args = ['scripts/executable.ts', '--package', builtPackage(), '--out', executable];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}, 300_000);

afterAll(() => rmSync(place, { recursive: true, force: true }));

/** The environment of a machine without Node. */
function environment(name: string): { readonly home: string; readonly env: NodeJS.ProcessEnv } {
  const home = join(place, name);
  mkdirSync(home, { recursive: true });
  return { home, env: { HOME: home, PATH: '/nowhere', TIDEGATE_CACHE: 'off' } };
}

function run(
  env: NodeJS.ProcessEnv,
  ...args: readonly string[]
): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(executable, args, {
    cwd: '/',
    env,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  return { status, stdout, stderr };
}

function serve(
  env: NodeJS.ProcessEnv,
  config: string,
): { readonly child: ChildProcess; readonly output: () => string } {
  const child = spawn(executable, ['serve', '--config', config], { cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] });
  atEnd(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output };
}

describe('the single executable', () => {
  test('prints its version without Node, also if several start at once', async () => {
    const { env } = environment('version');
    const statuses = [0, 1, 2].map(async () => {
      const child = spawn(executable, ['--version'], { env, stdio: 'ignore' });
      return new Promise((resolve) => child.once('exit', resolve));
    });
    expect(await Promise.all(statuses)).toEqual([0, 0, 0]);
    expect(run(env, '--version')).toEqual({ status: 0, stdout: '0.1.0\n', stderr: '' });
  });

  test('serves with two workers, a state file and the page, and drains', async () => {
    const upstream = await startUpstream();
    const { home, env } = environment('serve');
    const config = join(home, 'tidegate.yaml');
    writeFileSync(
      config,
      `listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
workers: 2
state: {store: sqlite, file: ${join(home, 'state.db')}}
upstreams: {api: {url: ${upstream.url}}}
`,
    );
    const { child, output } = serve(env, config);
    const log = await eventually(output, (seen) => seen.includes('"msg":"listening"'), TIMEOUT_MS);
    expect(log.match(/"msg":"worker is serving"/g)).toHaveLength(2);
    const [, url, admin] = /"url":"([^"]+)","admin":"([^"]+)"/.exec(log) ?? [];
    const response = await fetch(`${url}/echo`, { method: 'POST', body: 'a body' });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ method: 'POST' });
    expect(await (await fetch(`${admin}/`)).text()).toContain('<title>');
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });

  test('finds its presets and scenarios', () => {
    const { home, env } = environment('presets');
    const config = join(home, 'tidegate.yaml');
    writeFileSync(config, 'upstreams: {stripe: {provider: stripe}}\n');
    expect(run(env, 'check', config)).toMatchObject({ status: 0, stderr: '' });
    expect(run(env, 'simulate', 'token-bucket').stdout).toContain('goodput');
  });

  test('replaces a file of its package that was cut short', () => {
    const { home, env } = environment('cut');
    run(env, '--version');
    const folder = join(home, '.cache/tidegate');
    const [version = ''] = readdirSync(folder);
    writeFileSync(join(folder, version, 'dist/program.js'), '');
    expect(run(env, '--version')).toEqual({ status: 0, stdout: '0.1.0\n', stderr: '' });
  });

  test('reports a folder that it cannot use, and how to name another', () => {
    const { home, env } = environment('unsafe');
    expect(run({ ...env, XDG_CACHE_HOME: '/proc/nowhere' }, '--version')).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^tidegate: cannot unpack its files into \/proc\/nowhere\/tidegate\/\w+: .+\nSet XDG_CACHE_HOME to .+\n$/,
      ) as string,
    });
    run(env, '--version');
    chmodSync(join(home, '.cache/tidegate'), 0o777);
    expect(run(env, '--version')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('other users') as string,
    });
  });
});
