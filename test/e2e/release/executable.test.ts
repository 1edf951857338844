import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { builtPackage } from '../../support/programs/built-program.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const ROOT = join(import.meta.dirname, '../../..');
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const place = mkdtempSync(join(tmpdir(), 'tidegate-executable-test-'));
const executable = join(place, 'tidegate');
/** Only a hang reaches it. */
const TIMEOUT_MS = 100_000;

/** As docs/package.md, with a package that is already built. */
function build(folder: string, out: string): void {
  const args = ['scripts/executable.ts', '--package', folder, '--out', out];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

beforeAll(() => build(builtPackage(), executable), 300_000);

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
  program = executable,
): { readonly child: ChildProcess; readonly output: () => string } {
  const child = spawn(program, ['serve', '--config', config], { cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] });
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
    expect(run(env, '--version')).toEqual({ status: 0, stdout: `${VERSION}\n`, stderr: '' });
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

  test('starts workers of the running version after it was replaced by another one', async () => {
    const next = join(place, 'next');
    cpSync(builtPackage(), next, { recursive: true });
    // A worker of this package does not serve.
    writeFileSync(join(next, 'dist/main.js'), "process.stderr.write('the next version');\n");
    build(next, `${executable}-next`);
    const upstream = await startUpstream();
    const { home, env } = environment('replaced');
    const config = join(home, 'tidegate.yaml');
    writeFileSync(
      config,
      `listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nworkers: 2\nupstreams: {api: {url: ${upstream.url}}}\n`,
    );
    const replaceable = join(home, 'tidegate');
    copyFileSync(executable, replaceable);
    const { child, output } = serve(env, config, replaceable);
    await eventually(output, (seen) => seen.includes('"msg":"listening"'), TIMEOUT_MS);
    renameSync(`${executable}-next`, replaceable);
    const [worker = ''] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ');
    process.kill(Number(worker), 'SIGKILL');
    const isServing = (seen: string): boolean => seen.match(/"msg":"worker is serving"/g)?.length === 3;
    expect(await eventually(output, isServing, TIMEOUT_MS)).not.toContain('the next version');
  }, 300_000);

  test('finds its presets and scenarios', () => {
    const { home, env } = environment('presets');
    const config = join(home, 'tidegate.yaml');
    writeFileSync(config, 'upstreams: {stripe: {provider: stripe}}\n');
    expect(run(env, 'check', config)).toMatchObject({ status: 0, stderr: '' });
    expect(run(env, 'simulate', 'token-bucket').stdout).toContain('goodput');
  });

  test.each([
    ['was cut short', ''],
    ['has other content of the same length', undefined],
  ])('replaces a file of its package that %s', (_, content) => {
    const { home, env } = environment('cut');
    run(env, '--version');
    const folder = join(home, '.local/share/tidegate');
    const [version = ''] = readdirSync(folder);
    const file = join(folder, version, 'dist/program.js');
    writeFileSync(file, content ?? ' '.repeat(readFileSync(file).byteLength));
    expect(run(env, '--version')).toEqual({ status: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  test('unpacks into the folder of a service of systemd, else into that for data', () => {
    const { home, env } = environment('folders');
    const state = join(home, 'state');
    const data = join(home, 'data');
    mkdirSync(state);
    expect(run({ ...env, STATE_DIRECTORY: `${state}:/nowhere`, XDG_DATA_HOME: data }, '--version').status).toBe(0);
    expect(readdirSync(home)).toEqual(['state']);
    const [version = '', ...others] = readdirSync(join(state, 'package'));
    expect(others).toEqual([]);
    expect(readdirSync(join(state, 'package', version))).toEqual(expect.arrayContaining(['dist', 'NODE_LICENSE.txt']));
    expect(run({ ...env, XDG_DATA_HOME: data }, '--version').status).toBe(0);
    expect(readdirSync(join(data, 'tidegate'))).toHaveLength(1);
  });

  test('reports a folder that it cannot use, and how to name another', () => {
    const { home, env } = environment('unsafe');
    const remedy = 'Set XDG_DATA_HOME to a folder that belongs to this user and to which no other user can write.\n';
    const failed = (unusable: NodeJS.ProcessEnv): string => {
      const { status, stdout, stderr } = run(unusable, '--version');
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      return stderr;
    };
    expect(failed({ ...env, XDG_DATA_HOME: '/proc/nowhere' })).toMatch(
      new RegExp(`^tidegate: cannot unpack its files: .+/proc/nowhere.+\\n${remedy}$`),
    );
    expect(failed({ ...env, HOME: '/' })).toBe(`tidegate: cannot unpack its files: this user has no home\n${remedy}`);
    run(env, '--version');
    const folder = join(home, '.local/share/tidegate');
    chmodSync(folder, 0o777);
    expect(failed(env)).toBe(`tidegate: cannot unpack its files: other users can write to ${folder}\n${remedy}`);
  });
});
