/** What a start does about an earlier process on the same database that was killed. */
import type { ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { identifyProcess } from '../../../src/process/cluster/process-identity.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { isAlive, startWorkers, untilStored, workerOf, type Workers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

/** Starts processes on one database, in front of an upstream that holds its responses to `hold`. */
async function startMachine(workers: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-earlier-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'state.db');
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    if (body.toString() === 'hold') held.push(response);
    else response.end('paid');
  });
  const api = `{url: "${upstream.url}", timeout: 2m, perTryTimeout: 2m, idempotency: {ttl: 1h}}`;
  let stored = 0;
  return {
    file,
    held,
    hits: upstream.hits,
    start: (more = 'drain: {delay: 0, timeout: 20s}') =>
      startWorkers(`workers: ${workers}\n${more}\nstate: {store: sqlite, file: ${file}}\nupstreams: {api: ${api}}`),
    /** Sends a write, which the upstream holds. */
    hold: async (url: string, headers: readonly string[] = []) => {
      const before = held.length;
      const result = send(url, '/pay', { method: 'POST', body: 'hold', headers }).catch(() => undefined);
      await eventually(
        () => held.length,
        (count) => count > before,
      );
      return { result };
    },
    untilStored: (url: string) =>
      untilStored(workers, async () => {
        stored += 1;
        const headers = ['idempotency-key', `stored-${stored}`];
        expect((await send(url, '/pay', { method: 'POST', body: 'x', headers })).status).toBe(200);
        return upstream.hits.at(-1)!;
      }),
  };
}

const killAll = async (gate: Workers): Promise<void> => {
  for (const pid of [gate.child.pid ?? 0, ...gate.pids()].filter(isAlive)) process.kill(pid, 'SIGKILL');
  await gate.ended;
};

const reportsOf = (gate: Workers) =>
  gate.log().filter(({ msg }) => String(msg).startsWith('a write without an idempotency key'));

test.each([
  ['one process', 1],
  ['two workers', 2],
] as const)(
  'interrupted writes are reported by the first start that succeeds, and only by it: %s',
  async (_, workers) => {
    const { start, hold, untilStored } = await startMachine(workers);
    const first = await start();
    await hold(first.url);
    await untilStored(first.url);
    await killAll(first);

    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    await expect(start(`listen: 127.0.0.1:${port}`)).rejects.toThrow('(listen) is in use');

    const second = await start();
    await eventually(
      () => reportsOf(second),
      (reports) => reports.length > 0,
    );
    expect(await second.sum('tidegate_writes_interrupted_total{')).toBe(1);
    expect(second.log().filter(({ level, err }) => level === 'error' || err !== undefined)).toEqual([]);
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
    const third = await start();
    expect(await third.sum('tidegate_writes_interrupted_total{')).toBe(0);
    expect([reportsOf(second).length, reportsOf(third).length]).toEqual([1, 0]);
  },
  PATIENCE,
);

test(
  'the primary reports the writes without a key of a worker that is killed, once, and no others',
  async () => {
    const { start, hold, hits, untilStored } = await startMachine(2);
    const first = await start();
    // One at each worker.
    const held = [await hold(first.url), await hold(first.url)];
    const [own, others] = hits.map(workerOf);
    expect(new Set([own, others])).toEqual(new Set(['1', '2']));
    await untilStored(first.url);
    const serving = first.log().filter(({ msg }) => msg === 'worker is serving');
    const victim = serving.find(({ worker }) => String(worker) === own);
    process.kill(Number(victim?.['pid']), 'SIGKILL');
    expect(await held[0]?.result).toBeUndefined();
    const [report, ...more] = await eventually(
      () => reportsOf(first),
      (reports) => reports.length > 0,
    );
    expect([report?.['requestId'], more]).toEqual([headerOf(hits[0]?.headers ?? [], 'x-request-id'), []]);
    expect(await first.sum('tidegate_writes_interrupted_total{')).toBe(1);

    await killAll(first);
    const second = await start();
    const later = await eventually(
      () => reportsOf(second),
      (reports) => reports.length > 0,
    );
    expect(later.map(({ requestId }) => requestId)).toEqual([headerOf(hits[1]?.headers ?? [], 'x-request-id')]);
    expect(await second.sum('tidegate_writes_interrupted_total{')).toBe(1);
  },
  PATIENCE,
);

test(
  'when only the primary was killed, the next start serves once its workers have ended',
  async () => {
    const { start, hold, held, hits, untilStored } = await startMachine(2);
    const first = await start();
    onTestFinished(() => {
      for (const pid of first.pids()) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    });
    const key = ['idempotency-key', 'order'];
    const keyed = await hold(first.url, key);
    const unkeyed = await hold(first.url);
    await untilStored(first.url);
    const before = hits.length;
    first.child.kill('SIGKILL');
    let isServing = false;
    const starting = start().then((gate) => {
      isServing = true;
      return gate;
    });
    await pause(3000);
    expect([isServing, first.pids().every(isAlive)]).toEqual([false, true]);
    for (const response of held) response.end('paid');
    expect([(await keyed.result)?.status, (await unkeyed.result)?.status]).toEqual([200, 200]);
    const second = await starting;
    expect(first.pids().map(identifyProcess)).toEqual([undefined, undefined]);
    const waits = second.log().filter(({ msg }) => String(msg).startsWith('waits for the workers'));
    expect(waits).toMatchObject([{ pids: first.pids().toSorted((a, b) => a - b) }]);
    // The workers could not tell that they had answered.
    await eventually(
      () => reportsOf(second),
      (reports) => reports.length > 0,
    );
    expect(reportsOf(second).map(({ msg }) => msg)).toEqual([
      'a write without an idempotency key was under way when its primary ended: its worker may have answered it',
    ]);
    // This process knows no outcome of the write with the key, so it sends a repeat.
    const repeat = await hold(second.url, key);
    held.at(-1)?.end('paid');
    expect([(await repeat.result)?.status, hits.length - before]).toEqual([200, 1]);
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
    // A primary that ends in order leaves no workers.
    const third = await start();
    expect(third.log().filter(({ msg }) => String(msg).startsWith('waits'))).toEqual([]);
  },
  PATIENCE,
);

test(
  'workers finish their requests although a connection that the primary had handed over cannot be confirmed to it any more',
  async () => {
    const { start, hold, held } = await startMachine(2);
    const gate = await start();
    onTestFinished(() => {
      for (const pid of gate.pids()) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    });
    const writes = [await hold(gate.url), await hold(gate.url)]; // one at each worker
    for (const pid of gate.pids()) process.kill(pid, 'SIGSTOP');
    const { hostname, port } = new URL(gate.url);
    for (let n = 0; n < 4; n += 1) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => undefined);
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
    }
    // The primary has accepted them once it answers another client.
    await fetch(`${gate.adminUrl}/livez`);
    const exited = once(gate.child, 'exit'); // not its streams, which the workers have too
    gate.child.kill('SIGKILL');
    await exited;
    for (const pid of gate.pids()) process.kill(pid, 'SIGCONT');
    await pause(500); // for what they find in their channels
    for (const response of held) response.end('paid');
    const received = await Promise.all(writes.map(({ result }) => result));
    expect(received.map((each) => each?.status)).toEqual([200, 200]);
    expect(gate.log().filter(({ level }) => level === 'fatal')).toEqual([]);
  },
  PATIENCE,
);

test(
  'workers of a killed primary that do not end within drain.timeout end the start with a message',
  async () => {
    const { start, file } = await startMachine(2);
    const first = await start();
    const [stopped = 0] = first.pids();
    onTestFinished(() => void (isAlive(stopped) && process.kill(stopped, 'SIGKILL')));
    process.kill(stopped, 'SIGSTOP');
    first.child.kill('SIGKILL');
    await expect(start('drain: {delay: 0, timeout: 1s}')).rejects.toThrow(
      `tidegate: state.file: workers of an earlier process still run with ${file} (pid ${stopped}): end them`,
    );
    process.kill(stopped, 'SIGKILL');
    const second = await start();
    expect((await send(second.url, '/')).status).toBe(200);
  },
  PATIENCE,
);
