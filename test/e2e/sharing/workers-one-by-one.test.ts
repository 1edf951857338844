/** Behaviour of single workers and requests when several processes serve. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { statSync } from 'node:fs';
import { request as requestTls } from 'node:https';
import type { Agent, IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { run } from '../../support/proxy/process.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { isAlive, startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 90_000;
const KEYED = 'clients: {key: [header:x-api-key, ip]}';

test(
  'a client held by one worker is held by all',
  async () => {
    const upstream = await startHttpUpstream((n, response) => {
      if (n === 1) response.writeHead(429, { 'retry-after': '20' });
      response.end('answered');
    });
    const api = `{url: "${upstream.url}", retry: {attempts: 1}}`;
    const gate = await startWorkers(`workers: 2\n${KEYED}\nupstreams: {api: ${api}}`);
    const ask = (client: string, agent: Agent) => send(gate.url, '/', { agent, headers: ['x-api-key', client] });
    // Workers accept connections in turn.
    const agents = [keepAlive(), keepAlive(), keepAlive()];
    expect((await ask('held', agents[0]!)).status).toBe(429);
    await pause(200);
    for (const agent of agents) {
      const { status, header } = await ask('held', agent);
      expect(status).toBe(429);
      expect(Number(header('retry-after'))).toBeGreaterThan(10);
    }
    expect(upstream.hits).toHaveLength(1);
    const workers = () => new Set(gate.log().flatMap(({ msg, worker }) => (msg === 'request' ? [worker] : [])));
    await eventually(workers, ({ size }) => size === 2);
    expect((await ask('other', agents[1]!)).status).toBe(200);
  },
  PATIENCE,
);

test(
  'a drain answers and logs all requests, whichever processes get the signal',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => {
      setTimeout(() => response.end('finished'), 1500);
    });
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    const inHand = [1, 2, 3, 4].map((n) => send(gate.url, `/${n}`, { agent: keepAlive() }));
    await eventually(
      () => upstream.hits,
      ({ length }) => length === 4,
    );
    for (const pid of gate.pids()) process.kill(pid, 'SIGTERM'); // as systemd does
    gate.child.kill('SIGTERM');
    for (const answer of await Promise.all(inHand)) {
      expect([answer.status, answer.body.toString(), answer.header('connection')]).toEqual([200, 'finished', 'close']);
    }
    const { code, stdout } = await gate.ended;
    expect(code).toBe(0);
    expect(stdout.match(/"msg":"request"/g)).toHaveLength(4);
    expect(gate.pids().filter(isAlive)).toEqual([]);
  },
  PATIENCE,
);

test(
  'workers finish their requests and exit when the primary dies',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => {
      setTimeout(() => response.end('finished'), 1500);
    });
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    const inHand = [1, 2].map((n) => send(gate.url, `/${n}`, { agent: keepAlive() }));
    await eventually(
      () => upstream.hits,
      ({ length }) => length === 2,
    );
    gate.child.kill('SIGKILL');
    const answers = await Promise.all(inHand);
    expect(answers.map(({ body }) => body.toString())).toEqual(['finished', 'finished']);
    await eventually(
      () => gate.pids().filter(isAlive),
      (alive) => alive.length === 0,
    );
  },
  PATIENCE,
);

test(
  'a stopped worker blocks neither the others nor a scrape, and its counts are still reported',
  async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const api = `{url: "${upstream.url}", rateLimit: {initialRate: 50/s, maxRate: 50/s}}`;
    const gate = await startWorkers(`workers: 2\nupstreams: {api: ${api}}`);
    for (let i = 0; i < 4; i += 1) await send(gate.url, '/');
    expect(await gate.sum('tidegate_requests_total')).toBe(4);
    const [stuck = 0] = gate.pids();
    process.kill(stuck, 'SIGSTOP');
    onTestFinished(() => void (isAlive(stuck) && process.kill(stuck, 'SIGKILL')));
    const since = performance.now();
    expect(await gate.sum('tidegate_requests_total')).toBe(4);
    expect(performance.now() - since).toBeLessThan(8000);
    // At least one of two connections goes to the other worker.
    const answered = [1, 2].map((n) => send(gate.url, `/${n}`, { signal: AbortSignal.timeout(10_000) }));
    expect((await Promise.any(answered)).status).toBe(200);
    process.kill(stuck, 'SIGCONT');
    await Promise.allSettled(answered);
    expect(await gate.sum('tidegate_workers ')).toBe(2);
  },
  PATIENCE,
);

test(
  'workers serve TLS on a Unix socket in observe mode',
  async () => {
    const certificates = makeCertificates();
    onTestFinished(() => certificates.remove());
    certificates.issue('server', '-addext', 'subjectAltName=DNS:localhost');
    const upstream = await startHttpUpstream((_n, response) => response.end('seen'));
    const path = join(tmpdir(), `tidegate-workers-${process.pid}.sock`);
    const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
    const listen = `listen: {address: "unix:${path}", permissions: "600", tls: ${tls}}`;
    const gate = await startWorkers(`${listen}\nmode: observe\nworkers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const ask = async (): Promise<string> => {
      const options = { socketPath: path, ca: certificates.read('ca.crt'), servername: 'localhost', agent: false };
      const asking = requestTls({ ...options, path: '/', headers: { host: 'localhost' } }).end();
      const [answer] = (await once(asking, 'response')) as [IncomingMessage];
      return text(answer);
    };
    expect(await Promise.all([ask(), ask(), ask(), ask()])).toEqual(['seen', 'seen', 'seen', 'seen']);
    await eventually(
      () => gate.sum('tidegate_requests_total{route="/",method="GET",code="200"'),
      (count) => count === 4,
    );
    expect(await gate.sum('tidegate_mode{mode="observe"}')).toBe(1);
  },
  PATIENCE,
);
test(
  'a port in use gives the same error as with one process',
  async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const runs = [1, 2].map((workers) =>
      run([
        'serve',
        '--config',
        writeConfigFile(
          `listen: 127.0.0.1:${port}\nadmin: false\nworkers: ${workers}\nupstreams: {api: {url: "http://127.0.0.1:1"}}`,
        ),
      ]),
    );
    const [one, two] = await Promise.all(runs);
    expect(two?.code).toBe(1);
    expect(two?.stderr).toContain(`127.0.0.1:${port} (listen) is in use, perhaps by another Tidegate`);
    expect([two?.code, two?.stderr]).toEqual([one?.code, one?.stderr]);
  },
  PATIENCE,
);
