/** The log of the program as a process: one process, several, and on a terminal. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { freePort } from '../../support/free-port.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const ID = 'tidegate-request-id';

async function writeConfig(): Promise<string> {
  const upstream = await startHttpUpstream((_n, response) => response.end('well'));
  return `listen: 127.0.0.1:0
admin: 127.0.0.1:0
drain: {delay: 0, timeout: 1s}
upstreams: {api: {url: "${upstream.url}"}}
`;
}

test('all lines have the instance, with which the ids of requests begin', async () => {
  const gate = startProcess(['serve', '--config', writeConfigFile(await writeConfig())]);
  const listening = await eventually(
    () => gate.log().find(({ msg }) => msg === 'listening'),
    (line) => line !== undefined,
  );
  const { headers } = await fetch(String(listening?.['url']));
  gate.child.kill('SIGTERM');
  await gate.ended;
  const instance = String(headers.get(ID)).replace(/-.*/, '');
  expect(instance).toMatch(/^[\da-f]{8}$/);
  expect(gate.log().map(({ msg }) => msg)).toContain('request');
  expect(new Set(gate.log().map((line) => line['instance']))).toEqual(new Set([instance]));
});

test('the primary and its workers have one instance', async () => {
  const gate = await startWorkers(`workers: 2\n${await writeConfig()}`);
  const answer = await send(gate.url, '/');
  const lines = await eventually(gate.log, (all) => all.some(({ msg }) => msg === 'request'));
  const [line] = lines.filter(({ msg }) => msg === 'request');
  expect(line).toMatchObject({ id: answer.header(ID) });
  expect(answer.header(ID)).toMatch(new RegExp(`^${String(line?.['instance'])}-${String(line?.['worker'])}-`));
  expect(new Set(lines.map(({ instance }) => instance)).size).toBe(1);
});

test.each([1, 2])(
  'actions of operators are logged at level silent too, once each, with %i workers',
  async (workers) => {
    const [listen, admin] = [await freePort(), await freePort()];
    const token = 'token-of-an-operator';
    const config = `${await writeConfig()}workers: ${workers}\nlog: {level: silent}\n`
      .replace('listen: 127.0.0.1:0', `listen: 127.0.0.1:${listen}`)
      .replace('admin: 127.0.0.1:0', `admin: {listen: "127.0.0.1:${admin}", token: ${token}}`);
    const gate = startProcess(['serve', '--config', writeConfigFile(config)]);
    const url = `http://127.0.0.1:${admin}`;
    await eventually(
      () =>
        fetch(`${url}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      (isReady) => isReady,
    );
    await send(`http://127.0.0.1:${listen}`, '/');
    const { clients } = (await (await fetch(`${url}/api/clients`)).json()) as { clients: { key: string }[] };
    const client = clients[0]?.key;
    const post = (path: string) =>
      fetch(`${url}${path}`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    expect((await post('/api/upstreams/api/pin?rate=20/s')).status).toBe(200);
    expect((await post(`/api/clients/${client}/reset`)).status).toBe(200);
    expect((await post('/drain')).status).toBe(200);
    const { code, stdout, stderr } = await gate.ended;
    expect([code, stderr]).toEqual([0, '']);
    const common = { level: 'info', msg: 'operator action', by: '127.0.0.1' };
    const calm = { state: 'normal', allowance: 1, heldUntil: null };
    expect(gate.log()).toMatchObject([
      {
        ...{ ...common, action: 'pin', upstream: 'api', rate: 20 },
        ...{ before: { state: 'open', pinned: null }, after: { pinned: 20, rate: 20 } },
      },
      { ...common, action: 'reset', client, before: { api: calm }, after: { api: calm } },
      { ...common, action: 'drain', before: { phase: 'ready' }, after: { phase: 'draining' } },
    ]);
    expect(stdout).not.toContain(token);
  },
);

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Serves on a pseudoterminal. @returns the output so far */
function serveOnTerminal(config: string, env: NodeJS.ProcessEnv = {}): () => string {
  const command = `exec '${process.execPath}' '${builtProgram('main')}' --config '${config}'`;
  const args =
    process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', command] : ['-qec', command, '/dev/null'];
  const terminal = spawn('script', args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], TERM: 'xterm', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let text = '';
  terminal.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return () => text;
}

/** Waits for the address that it listens on, and sends a request there. */
async function visit(output: () => string, address: RegExp): Promise<void> {
  const found = await eventually(
    () => address.exec(output()),
    (match) => match !== null,
  );
  expect((await send(String(found?.[1]), '/things?key=secret')).status).toBe(200);
}

test('is one line of text for each event on a terminal, with colours unless NO_COLOR is set', async () => {
  const config = writeConfigFile(await writeConfig());
  const coloured = serveOnTerminal(config);
  const plain = serveOnTerminal(config, { NO_COLOR: '1' });
  await visit(coloured, /listening .*url=(http:\S+)/);
  await visit(plain, /listening .*url=(http:\S+)/);
  const line = /^[\d:.]+Z INFO  GET \/things → 200 forwarded, [\d.]+ ms  id=\S+ upstream=api endpoint=\S+ .*\r$/m;
  await eventually(plain, (text) => line.test(text));
  await eventually(coloured, (text) => text.includes('GET /things → 200 forwarded'));
  expect(coloured()).toContain('\u001b[2m');
  expect(plain()).not.toContain('\u001b');
  expect(plain()).not.toContain('secret');
});

test.each(['text', 'pretty'])('is JSON on a terminal, and %s elsewhere, if log.format says so', async (format) => {
  const yaml = await writeConfig();
  const json = serveOnTerminal(writeConfigFile(`${yaml}log: {format: json}\n`));
  await visit(json, /"url":"(http:[^"]+)"/);
  await eventually(json, (text) => text.includes('"msg":"request"'));
  const { child, log } = startProcess(['--config', writeConfigFile(`${yaml}log: {format: ${format}}\n`)]);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await visit(() => text, /listening  url=(http:\S+)/);
  await eventually(
    () => text,
    (seen) => seen.includes('GET /things → 200 forwarded'),
  );
  expect(log()).toEqual([]);
  expect(text).not.toContain('\u001b');
});
