/** A worker that is killed takes no connection with it that it had not accepted. */
import type { ServerResponse } from 'node:http';
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 60_000;

/** The connections of clients that the primary has. */
function clientConnections({ child, url }: Workers): number {
  const filter = `sport = :${new URL(url).port}`;
  const sockets = execFileSync('ss', ['-tnpH', 'state', 'connected', filter], { encoding: 'utf8' });
  return sockets.split('\n').filter((line) => line.includes(`pid=${child.pid},`)).length;
}

/** Resolves when so many workers have been replaced, and all serve. */
async function allReplaced(gate: Workers, replaced: number): Promise<void> {
  // First the log: the metrics of several workers, a hundred times a second, take as much processor time as the clients.
  await eventually(
    () => gate.pids().length,
    (count) => count === 2 + replaced,
    WITHIN,
  );
  await eventually(
    async () => [await gate.sum('tidegate_worker_restarts_total'), await gate.sum('tidegate_workers ')],
    ([restarts, serving]) => restarts === replaced && serving === 2,
    WITHIN,
  );
}

test(
  'connections passed to a worker that ends before it accepts them are served by another, and the keys of the worker become free',
  async () => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      if (body.toString() === 'hold' && held.length < 2) held.push(response);
      else response.end('done');
    });
    const api = `{url: "${upstream.url}", idempotency: {concurrent: refuse}}`;
    const gate = await startWorkers(`workers: 2\nupstreams: {api: ${api}}`);
    await send(gate.url, '/');
    const pay = (key: string) =>
      send(gate.url, '/pay', { method: 'POST', body: 'hold', headers: ['idempotency-key', key] });
    const writes = Promise.allSettled([pay('one'), pay('two')]); // one at each worker
    await eventually(
      () => held.length,
      (count) => count === 2,
    );

    for (let round = 0; round < 3; round += 1) {
      const [victim = 0] = gate.pids().slice(round === 0 ? 0 : -1);
      process.kill(victim, 'SIGSTOP'); // as one whose event loop is busy
      const reads = Array.from({ length: 4 }, () => send(gate.url, '/'));
      await pause(500);
      process.kill(victim, 'SIGKILL');
      expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      if (round === 0) {
        const repeats = new Set([(await pay('one')).status, (await pay('two')).status]);
        expect(repeats).toEqual(new Set([200, 409])); // the other worker still has one of them under way
        for (const response of held) response.end('done');
        expect(new Set((await writes).map(({ status }) => status))).toEqual(new Set(['fulfilled', 'rejected']));
      }
      await allReplaced(gate, round + 1);
    }
    await eventually(
      () => clientConnections(gate),
      (count) => count === 0,
      WITHIN,
    );
  },
  PATIENCE,
);

test(
  'clients that connect while workers are killed get an answer or a close, and the primary keeps no connection',
  async () => {
    const upstream = await startHttpUpstream((_nth, response) => response.end('done'));
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    const over = new AbortController();
    /** Milliseconds between the requests of a client. A worker starts late beside ten clients that do not wait. */
    let thinkTime = 0;
    const client = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await send(gate.url, '/').catch(() => pause(5));
        if (thinkTime > 0) await pause(thinkTime);
      }
    };
    const clients = Array.from({ length: 10 }, client);
    for (let i = 0; i < 6; i += 1) {
      thinkTime = 0;
      await pause(500);
      process.kill(gate.pids().at(-1) ?? 0, 'SIGKILL');
      await pause(200);
      thinkTime = 20;
      await allReplaced(gate, i + 1);
    }
    over.abort();
    await Promise.all(clients); // none hangs
    expect(gate.child.exitCode).toBe(null);
    await eventually(
      () => clientConnections(gate),
      (count) => count === 0,
      WITHIN,
    );
  },
  PATIENCE,
);

test(
  'when all workers are killed at once, connections that none of them had accepted are closed',
  async () => {
    const upstream = await startHttpUpstream((_nth, response) => response.end('done'));
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    await send(gate.url, '/');
    const victims = gate.pids();
    for (const pid of victims) process.kill(pid, 'SIGSTOP');
    const reads = Promise.allSettled(Array.from({ length: 4 }, () => send(gate.url, '/')));
    await pause(500);
    for (const pid of victims) process.kill(pid, 'SIGKILL');
    const ends = await reads;
    expect(ends.map(({ status }) => status)).toEqual(ends.map(() => 'rejected'));
    await allReplaced(gate, 2);
    expect((await send(gate.url, '/')).status).toBe(200);
    await eventually(
      () => clientConnections(gate),
      (count) => count === 0,
      WITHIN,
    );
  },
  PATIENCE,
);
