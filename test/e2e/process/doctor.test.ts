import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { builtProgram } from '../../support/programs/built-program.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { freePort } from '../../support/free-port.ts';
import { run, startProcess } from '../../support/proxy/process.ts';
import { fillDisk, mountOwnDisk } from '../../support/own-disk.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

interface Report {
  readonly ok: boolean;
  readonly problems: number;
  readonly findings: readonly Readonly<Record<'check' | 'status' | 'place' | 'meaning' | 'remedy', string>>[];
}

async function write(more = ''): Promise<string> {
  const [listen, admin, upstream] = [await freePort(), await freePort(), await startUpstream()];
  return writeConfigFile(
    `listen: 127.0.0.1:${listen}\nadmin: 127.0.0.1:${admin}\nupstreams: {api: {url: "${upstream.url}"}}\n${more}`,
  );
}

const faultsOf = (stdout: string, check: string) =>
  (JSON.parse(stdout) as Report).findings.filter((finding) => finding.check === check && 'remedy' in finding);

test('exits with 0 without a problem, with 1 for a problem, and with 2 for an invalid command line', async () => {
  const file = await write();
  const fine = await run(['doctor', '--config', file]);
  expect(fine).toMatchObject({ code: 0, stderr: '' });
  expect(fine.stdout).toMatch(/^tidegate doctor: no problems, /);
  const bad = await run(['doctor', '--config', `${file}.missing`, '--json']);
  expect(bad).toMatchObject({ code: 1, stderr: '' });
  expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, problems: 1 });
  const invalid = await run(['doctor', file]);
  expect(invalid).toEqual({
    ...{ code: 2, stdout: '' },
    stderr: `tidegate: doctor takes no '${file}' (did you mean --config ${file}?); run tidegate help doctor for usage\n`,
  });
});

test('reads the variables of serve, and says so if there is no configuration', async () => {
  const file = await write();
  const { stdout } = await run(['doctor'], { TIDEGATE_CONFIG: file });
  expect(stdout).toContain(`ok       config: ${file}: valid\n`);
  expect(await run(['doctor', '--admin', 'not an address'])).toEqual({
    ...{ code: 2, stdout: '' },
    stderr: "tidegate: --admin: 'not an address' is not an address; expected host:port, unix:/path or false\n",
  });
  const nothing = await run(['doctor', '--admin', `127.0.0.1:${await freePort()}`]);
  expect(nothing).toMatchObject({ code: 0, stderr: '' });
  expect(nothing.stdout).toMatch(/^skipped {2}config: no configuration: neither --config, /m);
});

// The process can read its limit only on Linux.
if (process.platform === 'linux') {
  test('takes the limit of the Tidegate that runs for that of the service, with workers too', async () => {
    const upstream = await startUpstream();
    const [listen, admin] = [await freePort(), await freePort()];
    const config = writeConfigFile(
      `listen: 127.0.0.1:${listen}\nadmin: 127.0.0.1:${admin}\nworkers: 2\nupstreams: {api: {url: "${upstream.url}"}}`,
    );
    const gate = startProcess(['serve', '--config', config], { files: 300 });
    await eventually(gate.log, (lines) => lines.some(({ msg }) => msg === 'listening'));
    const { code, stdout } = await run(['doctor', '--json', '--config', config]);
    expect(code).toBe(1);
    expect(faultsOf(stdout, 'limits')).toMatchObject([
      {
        place: 'open files of the Tidegate that runs',
        meaning: expect.stringMatching(
          /^the limit is 300: it allows \d+ connections of clients, not the 20000 /,
        ) as string,
      },
    ]);
  });

  test('reports a limit on open files that is too low for the configured connections', async () => {
    const { ended } = startProcess(['doctor', '--json', '--config', await write()], { files: 200 });
    const { code, stdout } = await ended;
    expect(code).toBe(1);
    expect(faultsOf(stdout, 'limits')).toMatchObject([
      {
        status: 'problem',
        meaning: expect.stringMatching(
          /^the limit is 200: it allows \d+ connections of clients, not the 20000 /,
        ) as string,
        remedy: expect.stringContaining('LimitNOFILE=65536') as string,
      },
    ]);
  });
}

test('reports a full disk for the state file', async () => {
  const folder = join(dirname(await write()), 'disk');
  const isFull = mountOwnDisk(folder, '1m');
  if (isFull) fillDisk(join(folder, 'filler'));
  const config = await write(`state: {store: sqlite, file: ${join(folder, 'state.db')}}`);
  // A user who may not mount a disk: a limit on the size of files has the same effect.
  const limit = isFull ? '' : 'ulimit -f 0; trap "" XFSZ; ';
  const command = `${limit}exec ${process.execPath} ${builtProgram('main')} doctor --json --config ${config}`;
  const { status, stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(faultsOf(stdout, 'state')).toMatchObject([
    { status: 'problem', meaning: expect.stringMatching(/^cannot be written: /) as string },
  ]);
  if (isFull) expect(faultsOf(stdout, 'state')[0]?.remedy).toMatch(/^Make room in /);
});

test('reports files and a folder that its user may not use', async () => {
  const folder = join(dirname(await write()), 'state');
  mkdirSync(folder);
  const config = await write(`state: {store: memory, file: ${join(folder, 'state.json')}}`);
  const secret = join(dirname(config), 'secret');
  writeFileSync(secret, 'x'.repeat(16));
  const guarded = await write(`secret: "\${file:${secret}}"`);
  chmodSync(folder, 0o555);
  chmodSync(secret, 0);
  // Root may read and write everything, unless it gives up these capabilities.
  const unprivileged =
    process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--'] : [];
  const diagnose = (file: string) => {
    const [command, ...args] = [...unprivileged, process.execPath, builtProgram('main'), 'doctor', '--json'];
    return spawnSync(command, [...args, '--config', file], { encoding: 'utf8', env: { PATH: process.env['PATH'] } });
  };
  const unwritable = diagnose(config);
  expect([unwritable.status, unwritable.stderr]).toEqual([1, '']);
  expect(faultsOf(unwritable.stdout, 'state')).toMatchObject([
    {
      meaning: 'cannot be written: permission denied',
      remedy: expect.stringMatching(/^Let the user \S+ write there/) as string,
    },
  ]);
  const unreadable = diagnose(guarded);
  expect(faultsOf(unreadable.stdout, 'config')).toMatchObject([
    {
      meaning: expect.stringContaining('permission denied') as string,
      remedy: expect.stringMatching(/^Let the user \S+ read the file/) as string,
    },
  ]);
});

test('finds the Tidegate of the configuration that runs, with its workers', async () => {
  const upstream = await startUpstream();
  const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
  const config = writeConfigFile(
    `listen: ${new URL(gate.url).host}\nadmin: ${new URL(gate.adminUrl).host}\nworkers: 2\nupstreams: {api: {url: "${upstream.url}"}}`,
  );
  const { code, stdout } = await run(['doctor', '--config', config]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok {7}running: 127\.0\.0\.1:\d+: Tidegate \S+, ready, since 20/m);
  expect(stdout).toMatch(/^ok {7}addresses: listen \(.*\): in use, while a Tidegate runs$/m);
});
