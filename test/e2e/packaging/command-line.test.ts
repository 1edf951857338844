import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RunningProcess } from '../../support/proxy/process.ts';
import { run, startProcess } from '../../support/proxy/process.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];

describe('a usage error exits with 2 and one line', () => {
  test.each([
    [[], 'tidegate: nothing to serve: name a config (--config FILE, TIDEGATE_CONFIG) or an upstream'],
    [['serve'], 'tidegate: nothing to serve'],
    [['serv'], "tidegate: unknown command 'serv' (did you mean serve?)"],
    [['--upstraem', 'http://127.0.0.1:1'], 'tidegate: unknown option --upstraem (did you mean --upstream?)'],
    [['backoff', 'fulljitter'], "tidegate: no strategy is called 'fulljitter' (did you mean full-jitter?)"],
    [['check'], 'tidegate: check needs a FILE'],
    [['diff', 'one.yaml'], 'tidegate: diff needs two files: OLD NEW'],
  ])('%j', async (args, line) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr.startsWith(line), stderr).toBe(true);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});

test('output that cannot be written is reported in one line', () => {
  const command = `exec ${process.execPath} ${builtProgram('main')} schema > /dev/full`;
  const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  expect(stderr.trimEnd()).toMatch(/^tidegate: the output cannot be written: ENOSPC: .*$/);
  expect(status).toBe(1);
});

describe('diff', () => {
  const write = (name: string, more: string): string =>
    temporaryFile(name, `upstreams: {api: {url: "https://a.example"}}\n${more}`);

  test('exits with 0 and says so when both files are equivalent', async () => {
    const [one, two] = [write('a.yaml', ''), write('b.yaml', '# the same\nmode: enforce\n')];
    expect(await run(['diff', one, two])).toEqual({ code: 0, stdout: 'no differences\n', stderr: '' });
    expect(await run(['diff', one, two, '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{/) as string,
    });
  });

  test('exits with 1 and prints the changes and those that need a restart, without secrets', async () => {
    const one = write('a.yaml', 'workers: 1\nadmin: {listen: "127.0.0.1:1", token: "hush-hush-hush-hush"}');
    const two = write('b.yaml', 'workers: 2\nroutes: [{path: /v1, upstream: api, timeout: 3s}]');
    const { code, stdout } = await run(['diff', one, two]);
    expect(code).toBe(1);
    expect(stdout).toContain('Needs a restart: a reload of this file is refused as a whole.\n');
    expect(stdout).toContain('  workers: 1 → 2\n');
    expect(stdout).toContain('  /v1 is added: {path: /v1, upstream: api, timeout: 3s}\n');
    expect(stdout).toContain('  / is removed; it was {path: /, upstream: api}\n');
    expect(stdout).not.toContain('hush');
    const json = await run(['diff', one, two, '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ same: false, needsRestart: true });
    expect(json.stdout).not.toContain('hush');
  });

  test('exits with 2 and the position of the error when one file is invalid', async () => {
    const { code, stdout, stderr } = await run(['diff', write('a.yaml', ''), temporaryFile('b.yaml', 'listne: 1\n')]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('b.yaml:1:1 listne: unknown key (did you mean listen?)');
  });
});

describe('a configuration or environment error exits with 1 and its position', () => {
  test('a missing config', async () => {
    const { code, stderr } = await run(['--config', 'nowhere.yaml']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'tidegate: nowhere.yaml: cannot be read: no such file\n' });
  });

  test('a config with errors: all of them, with their positions', async () => {
    const file = temporaryFile(
      'bad.yaml',
      'upstreams:\n  pay:\n    url: https://api.example.com\n    retry: {atempts: 3}\n    timeout: 10\n',
    );
    const { code, stderr } = await run(['--config', file]);
    expect(code).toBe(1);
    expect(stderr).toContain('bad.yaml:4:13 upstreams.pay.retry.atempts: unknown key (did you mean attempts?)');
    expect(stderr).toContain('bad.yaml:5:14 upstreams.pay.timeout');
    expect(stderr).not.toContain('    at ');
  });

  test('an upstream that is not a URL', async () => {
    const { code, stderr } = await run(['--upstream', 'api.example.com']);
    expect(code).toBe(1);
    expect(stderr).toContain('--upstream');
    expect(stderr).toContain('did you mean https://api.example.com?');
  });

  test('a config that is not a regular file, without blocking on it', async () => {
    const folder = dirname(temporaryFile('a', ''));
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    for (const args of [['check'], ['--config']]) {
      const errorOf = async (path: string) => (await run([...args, path])).stderr.replace(/^tidegate: /, '');
      expect(await errorOf(fifo)).toBe(`${fifo}: cannot be read: it is not a regular file\n`);
      expect(await errorOf(folder)).toBe(`${folder}: cannot be read: it is a directory\n`);
      expect(await errorOf('/proc/self/mem')).toBe('/proc/self/mem: cannot be read: i/o error (EIO)\n');
    }
  });

  test.each(['--listen', '--admin'])('%s at a Unix socket in a missing folder', async (flag) => {
    const socket = join(dirname(temporaryFile('a', '')), 'nowhere', 'gate.sock');
    const { code, stderr } = await run([
      ...['--upstream', 'http://127.0.0.1:9', flag, `unix:${socket}`],
      ...(flag === '--listen' ? ['--admin', '127.0.0.1:0'] : ['--listen', '127.0.0.1:0']),
    ]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `tidegate: ${socket} cannot be created: its folder must exist and be writable by this user\n`,
    });
  });

  test('a port in use', async () => {
    const port = await occupyPort();
    const { code, stderr } = await run([
      '--upstream',
      'http://127.0.0.1:9',
      '--listen',
      `127.0.0.1:${port}`,
      '--admin',
      '127.0.0.1:0',
    ]);
    expect(stderr).toMatch(inUse(`127.0.0.1:${port} (listen)`, String.raw`, such as --listen 127\.0\.0\.1:\d+`));
    expect(code).toBe(1);
  });

  test('several ports in use: all of them, the one for clients first, with the command to type under npm', async () => {
    const [listen, admin] = [await occupyPort(), await occupyPort()];
    const { code, stderr } = await run(
      ['--upstream', 'http://127.0.0.1:9', '--listen', String(listen), '--admin', `127.0.0.1:${admin}`],
      { npm_lifecycle_event: 'start', npm_package_name: 'tidegate', npm_execpath: '/npm' },
    );
    expect(stderr).toMatch(
      inUse(
        `127.0.0.1:${listen} (listen) and 127.0.0.1:${admin} (admin)`,
        String.raw`, such as npm start -- --listen 127\.0\.0\.1:\d+ --admin 127\.0\.0\.1:\d+`,
        { verb: 'are', other: 'other addresses' },
      ),
    );
    expect(code).toBe(1);
  });

  test('a bad address before nothing to serve', async () => {
    const { code, stderr } = await run(['--listen', '99999', '--admin', 'here']);
    expect(stderr).toBe('--listen: a port is at most 65535\n--admin: expected host:port, [::]:port or unix:/path\n');
    expect(code).toBe(1);
  });
});

describe('commands', () => {
  test('check exits with 0 for a valid config, with 1 for an invalid one', async () => {
    const sound = await run(['check', 'config/tidegate.yaml']);
    expect(sound).toMatchObject({ code: 0, stderr: '' });
    expect(sound.stdout.split('\n').slice(0, 3)).toEqual([
      'config/tidegate.yaml: valid, no warnings',
      '',
      'Worst cases:',
    ]);
    expect(sound.stdout.split('\n').length).toBeLessThan(30);
    const bad = await run(['check', temporaryFile('bad.yaml', 'listne: 127.0.0.1:1\n')]);
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain('bad.yaml:1:1 listne: unknown key (did you mean listen?)');
  });

  test('check --probe connects to each endpoint, and exits with 1 if one accepts no connection', async () => {
    const upstream = await startUpstream();
    const closed = await closedUrl();
    const configOf = (...urls: readonly string[]): string =>
      temporaryFile('probe.yaml', `upstreams: {api: {urls: [${urls.join(', ')}]}}\n`);
    const reachable = await run(['check', '--probe', configOf(upstream.url)]);
    expect(reachable).toMatchObject({ code: 0, stderr: '' });
    expect(reachable.stdout).toContain(`\nEndpoints:\n  api ${upstream.url}: reachable\n`);
    const partly = await run(['check', '--probe', configOf(upstream.url, closed)]);
    expect(partly).toMatchObject({ code: 1, stderr: '' });
    expect(partly.stdout).toMatch(/^\S+: valid, no warnings, 1 endpoint unreachable\n/);
    expect(partly.stdout).toContain(`  api ${closed}: unreachable: connection refused\n`);
    expect(upstream.stats().received, 'sends no request').toBe(0);
    expect(await run(['check', configOf(closed)])).toMatchObject({ code: 0 });
  });

  test('check --probe prints the reference of a url from a variable, not the url', async () => {
    const file = temporaryFile('probe.yaml', `upstreams: {api: {url: "$\{API_URL}"}}\n`);
    const { code, stdout } = await run(['check', '--probe', file], { API_URL: await closedUrl() });
    expect(code).toBe(1);
    expect(stdout).toContain(`  api $\{API_URL}: unreachable: connection refused\n`);
  });

  test('check finds presets from any working directory', () => {
    const cwd = dirname(temporaryFile('p.yaml', 'upstreams: {pay: {provider: stripe}}'));
    const checked = execFileSync(process.execPath, [builtProgram('main'), 'check', '--full', 'p.yaml'], {
      cwd,
      encoding: 'utf8',
    });
    expect(checked).toContain('initialRate: 100/s # uncertain');
    expect(checked).toContain(
      '#     uncertain: rateLimit.initialRate: An account may have other limits than those that Stripe publishes',
    );
  });

  test('check reads standard input', async () => {
    const running = startProcess(['check', '/dev/stdin']);
    running.child.stdin.end('upstreams: {api: {url: https://api.example.com}}\n');
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('schema prints a JSON Schema', async () => {
    const { code, stdout } = await run(['schema']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'object', properties: { upstreams: { type: 'object' } } });
  });

  test('backoff --json prints the delay of each attempt', async () => {
    const { stdout } = await run(['backoff', 'exponential', '--base', '10ms', '--attempts', '3', '--json']);
    expect(JSON.parse(stdout)).toEqual({
      rows: [
        { attempt: 1, min: 10, mean: 10, max: 10 },
        { attempt: 2, min: 20, mean: 20, max: 20 },
        { attempt: 3, min: 40, mean: 40, max: 40 },
      ],
    });
  });

  test('the practice upstream lists its options', async () => {
    const script = builtProgram('practice');
    const help = await startProcess(['--help'], { script }).ended;
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('--spec FILE');
    const wrong = await startProcess(['--wrong'], { script }).ended;
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toBe(`practice: Unknown option '--wrong'\n\n${help.stdout}`);
  });

  test('--version prints the version', async () => {
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe('a running process', () => {
  test('becomes unready on SIGTERM, answers requests in flight, refuses new ones, and exits with 0', async () => {
    const upstream = await startUpstream();
    const file = temporaryFile(
      'drain.yaml',
      `drain: {delay: 300ms, timeout: 5s}\nupstreams: {api: {url: '${upstream.url}'}}\n`,
    );
    const running = startProcess(['--config', file, ...ANY_PORT]);
    const { url, admin } = await listening(running);

    const slow = fetch(`${url}/echo`, { headers: { 'x-practice-script': 'delay=900;200', 'x-practice-id': 'slow' } });
    await eventually(
      () => upstream.stats().inFlight,
      (inFlight) => inFlight === 1,
    );
    running.child.kill('SIGTERM');
    await eventually(
      async () => (await fetch(`${admin}/readyz`)).status,
      (status) => status === 503,
    );
    expect((await fetch(`${url}/echo`)).status, 'serves during the drain delay').toBe(200);

    const answer = await slow;
    expect(answer.status).toBe(200);
    expect(answer.headers.get('connection')).toBe('close');
    const { code } = await running.ended;
    expect(code).toBe(0);
    await expect(fetch(`${url}/echo`)).rejects.toThrow();
  });

  test('warns at the start of each endpoint that accepts no connection, and serves', async () => {
    const upstream = await startUpstream();
    const closed = await closedUrl();
    const file = temporaryFile(
      'partly.yaml',
      `upstreams: {up: {url: '${upstream.url}'}, down: {url: '${closed}'}}\nroutes: [{path: /, upstream: up}]\n`,
    );
    const running = startProcess(['--config', file, ...ANY_PORT]);
    const { url } = await listening(running);
    const isUnreachable = ({ msg }: { readonly msg?: unknown }): boolean =>
      String(msg).startsWith('upstream unreachable at the start');
    const lines = await eventually(running.log, (seen) => seen.some(isUnreachable));
    expect(lines.filter(isUnreachable)).toMatchObject([
      { level: 'warn', upstream: 'down', endpoint: closed, problem: 'connection refused' },
    ]);
    expect((await fetch(`${url}/echo`)).status).toBe(200);
    expect(upstream.stats().received, 'the check at the start sends no request').toBe(1);
  });

  test.each(['--listen', '--admin'])('does not touch a regular file given as the Unix socket of %s', async (flag) => {
    const file = temporaryFile('precious.txt', 'precious');
    const { code, stderr } = await run([
      ...['--upstream', 'http://127.0.0.1:9', flag, `unix:${file}`],
      ...(flag === '--listen' ? ['--admin', '127.0.0.1:0'] : ['--listen', '127.0.0.1:0']),
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain(`unix:${file} (${flag.slice(2)}) is in use`);
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  test('starts on a Unix socket left by a killed process, but not on one in use', async () => {
    const upstream = await startUpstream();
    const socket = temporaryFile('gate.sock', '');
    rmSync(socket);
    const args = ['--upstream', upstream.url, '--listen', `unix:${socket}`, '--admin', '127.0.0.1:0'];
    const first = startProcess(args);
    await listening(first);
    const second = await run(args);
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(inUse(`unix:${socket} (listen)`, ' in the configuration'));
    first.child.kill('SIGKILL');
    await first.ended;
    const third = startProcess(args);
    await listening(third);
    third.child.kill('SIGINT');
    expect((await third.ended).code).toBe(0);
  });

  test('exits at once on a second signal', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--upstream', upstream.url, ...ANY_PORT]);
    const { url } = await listening(running);
    const hung = fetch(`${url}/echo`, { headers: { 'x-practice-script': 'hang', 'x-practice-id': 'hung' } }).catch(
      () => 'cut',
    );
    await eventually(
      () => upstream.stats().inFlight,
      (inFlight) => inFlight === 1,
    );
    running.child.kill('SIGTERM');
    await eventually(running.log, (lines) => lines.some(({ msg }) => msg === 'draining'));
    await new Promise((resolve) => {
      setTimeout(resolve, 600); // sooner, it would be a duplicate of the first
    });
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(1);
    expect(await hung).toBe('cut');
    expect(running.log().at(-1)).toMatchObject({
      level: 'warn',
      signal: 'SIGTERM',
      msg: 'second signal: exits at once, requests in flight are cut',
    });
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'handles %s at each moment of a drain, as npm may send it twice at once',
    async (signal) => {
      // While there is no listener, the default of the system applies, and the signal kills the process.
      const watch = `process.on('removeListener', () => {
      if (process.listenerCount('${signal}') === 0) console.error('no listener');
    })`;
      const upstream = await startUpstream();
      const running = startProcess(['--upstream', upstream.url, ...ANY_PORT], {
        env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(watch)}` },
      });
      await listening(running);
      running.child.kill(signal);
      expect(await running.ended).toMatchObject({ code: 0, stderr: '' });
    },
  );

  test.each(['SIGINT', 'SIGTERM'] as const)('ignores a repeated %s 50 ms after the first', async (signal) => {
    const upstream = await startUpstream();
    const file = temporaryFile('twice.yaml', `drain: {delay: 0}\nupstreams: {api: {url: '${upstream.url}'}}\n`);
    const running = startProcess(['--config', file, ...ANY_PORT]);
    const { url } = await listening(running);
    const slow = fetch(`${url}/echo`, { headers: { 'x-practice-script': 'delay=400;200', 'x-practice-id': 'slow' } });
    await eventually(
      () => upstream.stats().inFlight,
      (inFlight) => inFlight === 1,
    );
    running.child.kill(signal);
    await new Promise((resolve) => {
      setTimeout(resolve, 50); // the kernel merges simultaneous signals
    });
    running.child.kill(signal);
    expect((await slow).status).toBe(200);
    expect((await running.ended).code).toBe(0);
  });

  test.each([[[]], [['serve']], [['--listen', '0']]])(
    'serves the practice config with npm start -- %j',
    async (args) => {
      const running = startProcess(args, {
        script: 'scripts/start.ts',
        env: { TIDEGATE_LISTEN: '127.0.0.1:0', TIDEGATE_ADMIN: '127.0.0.1:0' },
      });
      const { url, admin } = await listening(running);
      expect((await fetch(url)).status).toBe(200);
      expect(await (await fetch(`${admin}/metrics`)).text()).toContain('tidegate_build_info{version=');
      running.child.kill('SIGINT');
      expect((await running.ended).code).toBe(0);
    },
  );

  test('runs demo on free ports beside a process with the default ports, unless a flag sets them', async () => {
    const taken = ['--listen', `127.0.0.1:${await occupyPort()}`];
    expect(await run(['demo', ...taken])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^tidegate: .* in use, perhaps by another Tidegate: .*\n$/) as string,
    });
    await occupyPort(8080);
    const running = startProcess(['demo', '--admin', '127.0.0.1:0']);
    let output = '';
    running.child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await eventually(
      () => output,
      (text) => /on http:\/\/127\.0\.0\.1:(?!8080)\d+,/.test(text) && text.includes(' 1 s '),
      15_000,
    );
    expect(output).toMatch(/^127\.0\.0\.1:8080 is in use: using (http:\S+)\nTidegate \S+ on \1,/);
    running.child.kill('SIGINT');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nstopped\n$/);
  });

  test('learns an unknown limit in demo, and prints its state each second', async () => {
    const running = startProcess(['demo', ...ANY_PORT]);
    let output = '';
    running.child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await eventually(
      () => output,
      (text) => /^ +[2-9] s .*(?:backoff|cooldown|restoring)$/m.test(text),
    );
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(0);
  });
});

/** The message that an address is in use. @param what address and setting @param example a pattern */
function inUse(what: string, example: string, { verb = 'is', other = 'another address' } = {}): RegExp {
  const literal = `${what} ${verb} in use, perhaps by another Tidegate: stop it, or choose ${other}`;
  return new RegExp(`^tidegate: ${literal.replaceAll(/[.()]/g, String.raw`\$&`)}${example}\n$`);
}

async function listening(running: RunningProcess): Promise<{ url: string; admin: string }> {
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const line = lines.find(({ msg }) => msg === 'listening');
  return { url: String(line?.['url']), admin: String(line?.['admin']) };
}

/** The url of a port that was free just now, and refuses connections. */
async function closedUrl(): Promise<string> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

/** Occupies a free port, or this one, if another process does not have it already. */
async function occupyPort(port = 0): Promise<number> {
  const server = createServer();
  const isOpen = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!isOpen) return port;
  onTestFinished(() => {
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function temporaryFile(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
