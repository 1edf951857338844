/** What a start does about an earlier process on the same database that was killed. */
import type { ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
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
  const api = `{url: "${upstream.url}", idempotency: {ttl: 1h}}`;
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
  };
}

const killAll = async (gate: Workers): Promise<void> => {
  for (const pid of [gate.child.pid ?? 0, ...gate.pids()]) process.kill(pid, 'SIGKILL');
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
    const { start, hold } = await startMachine(workers);
    const first = await start();
    await hold(first.url);
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
