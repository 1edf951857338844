/** Keys of writes in a database survive the end of the process, however it ends. */
import type { ServerResponse } from 'node:http';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, untilStored } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-sqlite-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  return folder;
}

test.concurrent.each([
  ['one process', 1, 'full'],
  ['two workers', 2, 'normal'],
] as const)(
  'after SIGKILL, a write without a response is unresolved, and an answered one is not: %s',
  async (_, workers, durability) => {
    const held: ServerResponse[] = [];
    let isHolding = true;
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      if (body.toString() === 'prompt' || !isHolding) response.end('paid');
      else held.push(response);
    });
    const ttl = '[{path: /pay, ttl: 4s}, {path: /charge, ttl: 1h}]';
    const api = `{url: "${upstream.url}", timeout: 2m, perTryTimeout: 2m, idempotency: {ttl: ${ttl}}, retry: {safePaths: [/safe]}}`;
    const state = `state: {store: sqlite, file: ${join(makeFolder(), 'state.db')}, durability: ${durability}}`;
    const retry = '{backOff: {strategy: fixed, baseInterval: 3m}}';
    const dead = `{url: "http://127.0.0.1:1", timeout: 5m, retry: ${retry}}`;
    const routes = '[{path: /, upstream: api}, {path: /dead, upstream: dead}]';
    const start = () =>
      startWorkers(`workers: ${workers}\n${state}\nupstreams: {api: ${api}, dead: ${dead}}\nroutes: ${routes}`);
    const first = await start();
    const pay = (url: string, key: string, path = '/pay') =>
      send(url, path, { method: 'POST', body: key, headers: ['idempotency-key', key] });
    expect((await pay(first.url, 'prompt')).status).toBe(200);
    const lost = Promise.allSettled([pay(first.url, 'order'), pay(first.url, 'charge', '/charge')]);
    await eventually(
      () => held.length,
      (count) => count === 2,
    );
    const since = Date.now();
    const unkeyed = send(first.url, '/unkeyed', { method: 'POST', body: 'pay' }).catch(() => 'lost');
    await eventually(
      () => held.length,
      (count) => count === 3,
    );
    const safe = send(first.url, '/safe', { method: 'POST', body: 'search' }).catch(() => 'lost');
    await eventually(
      () => held.length,
      (count) => count === 4,
    );
    // It never had a connection, and waits for its retry.
    const unsent = send(first.url, '/dead', { method: 'POST', body: 'pay' }).catch(() => 'lost');
    await eventually(
      () => first.sum('tidegate_retries_total{upstream="dead",reason="connect"'),
      (count) => count === 1,
    );
    const stored = await untilStored(workers, async (n) => {
      const before = held.length;
      pay(first.url, `stored-${n}`, '/charge').catch(() => undefined);
      await eventually(
        () => held.length,
        (count) => count > before,
      );
      return upstream.hits.at(-1)!;
    });
    isHolding = false;
    for (const pid of [first.child.pid ?? 0, ...first.pids()]) process.kill(pid, 'SIGKILL');
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await Promise.all([unkeyed, safe, unsent])).toEqual(['lost', 'lost', 'lost']);
    await first.ended;

    const second = await start();
    expect(second.log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({
      writes: 3 + stored,
      unresolved: 2 + stored,
    });
    const interrupted = await eventually(
      () => second.log().filter(({ msg }) => String(msg).startsWith('a write without an idempotency key')),
      ({ length }) => length > 0,
    );
    expect(interrupted).toMatchObject([{ route: '/', upstream: 'api', method: 'POST' }]);
    const { sentAt, requestId } = interrupted[0] ?? {};
    expect([Date.parse(String(sentAt)) >= since, Date.parse(String(sentAt)) <= Date.now()]).toEqual([true, true]);
    const unkeyedHit = upstream.hits.find(({ target }) => target === '/unkeyed');
    expect(headerOf(unkeyedHit?.headers ?? [], 'x-request-id')).toBe(requestId);
    expect(await second.sum('tidegate_writes_interrupted_total{')).toBe(1);
    expect((await pay(second.url, 'charge', '/charge')).status).toBe(200);
    await pause(4000);
    const outcomes: unknown[] = [];
    for (const key of ['order', 'prompt', 'order', 'prompt']) {
      const { status, json, header } = await pay(second.url, key);
      outcomes.push([status, json()['reason'], header('tidegate-outcome')]);
    }
    const unresolved = [409, 'key_expired', 'unknown'];
    const answered = [409, 'key_expired', undefined];
    expect(outcomes).toEqual([unresolved, answered, unresolved, answered]);
    expect(upstream.hits.length).toBe(6 + stored);
  },
  PATIENCE,
);

test.concurrent(
  'a database that cannot be used ends the start with a message',
  async () => {
    const file = join(makeFolder(), 'state.db');
    writeFileSync(file, 'no database'.repeat(1000));
    const start = (path: string) =>
      startWorkers(`state: {store: sqlite, file: ${path}}\nupstreams: {api: {url: "http://127.0.0.1:1"}}`);
    await expect(start(file)).rejects.toThrow(
      `tidegate: state.file: ${file} is not a database, or is damaged; move it away to start without what it remembers`,
    );
    const other = join(makeFolder(), 'state.db');
    const first = await start(other);
    await expect(start(other)).rejects.toThrow(`tidegate: state.file: another process uses ${other}`);
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const second = await start(other);
    expect((await send(second.url, '/')).status).toBe(502);
  },
  PATIENCE,
);

test.concurrent(
  'a write with a body of 3 MB is remembered',
  async () => {
    const upstream = await startHttpUpstream((_nth, response) => response.end('paid'));
    const api = `{url: "${upstream.url}", idempotency: {ttl: 1h}, retry: {replayLimit: 8MiB}}`;
    const start = () => startWorkers(`state: {store: sqlite, file: ${file}}\nupstreams: {api: ${api}}`);
    const file = join(makeFolder(), 'state.db');
    const body = JSON.stringify({ memo: 'x'.repeat(3_000_000) });
    const pay = async ({ url }: { url: string }) => {
      const headers = ['idempotency-key', 'order', 'content-type', 'application/json'];
      return (await send(url, '/pay', { method: 'POST', body, headers })).status;
    };
    const first = await start();
    expect(await pay(first)).toBe(200);
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await start();
    expect(second.log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({ writes: 1 });
    expect(await pay(second)).toBe(200);
    expect(upstream.hits.length).toBe(2);
  },
  PATIENCE,
);

test.concurrent(
  'a database with a damaged page ends the start with the name of the file',
  async () => {
    const file = join(makeFolder(), 'state.db');
    const start = () =>
      startWorkers(`state: {store: sqlite, file: ${file}}\nupstreams: {api: {url: "http://127.0.0.1:1"}}`);
    const first = await start();
    first.child.kill('SIGTERM');
    await first.ended;
    const database = new DatabaseSync(file);
    const page = Number(
      database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'writes'").get()?.['rootpage'],
    );
    database.close();
    writeFileSync(file, readFileSync(file).fill(0xab, (page - 1) * 4096, page * 4096));
    await expect(start()).rejects.toThrow(
      `tidegate: state.file: ${file} is not a database, or is damaged; move it away to start without what it remembers`,
    );
  },
  PATIENCE,
);

test.concurrent(
  'a database whose log is lost ends the start, and the log brings it back',
  async () => {
    const upstream = await startHttpUpstream((_nth, response) => response.end('paid'));
    const file = join(makeFolder(), 'state.db');
    const start = () =>
      startWorkers(
        `state: {store: sqlite, file: ${file}}\nupstreams: {api: {url: "${upstream.url}", idempotency: {ttl: 1h}}}`,
      );
    const first = await start();
    for (const key of ['a', 'b', 'c']) {
      const paid = await send(first.url, '/pay', { method: 'POST', body: key, headers: ['idempotency-key', key] });
      expect(paid.status).toBe(200);
    }
    first.child.kill('SIGKILL');
    await first.ended;
    renameSync(`${file}-wal`, `${file}-elsewhere`);
    for (let i = 0; i < 2; i += 1) {
      await expect(start()).rejects.toThrow(
        `tidegate: state.file: a part of what ${file} remembers is lost: ${file}-wal is missing, although the last process did not ` +
          `remove it; restore ${file} and ${file}-wal together from where they were, or move both away to start without all that`,
      );
    }
    renameSync(`${file}-elsewhere`, `${file}-wal`);
    const second = await start();
    expect(second.log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({ writes: 3 });
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
    expect(existsSync(`${file}-wal`)).toBe(false);
    const third = await start();
    expect(third.log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({ writes: 3 });
  },
  PATIENCE,
);

test.concurrent.each([1, 2])(
  'after SIGKILL, the learned rate is in force, and the client is held until its Retry-After: %d worker(s)',
  async (workers) => {
    const upstream = await startHttpUpstream((nth, response) => {
      if (nth > 30) response.writeHead(429, { 'Retry-After': '300' });
      response.end();
    });
    const file = join(makeFolder(), 'state.db');
    const api = `{url: "${upstream.url}", rateLimit: {scope: client}, retry: {attempts: 1}}`;
    const other = `{url: "${upstream.url}", retry: {attempts: 1}}`;
    const start = () =>
      startWorkers(`
workers: ${workers}
state: {store: sqlite, file: ${file}}
clients: {key: [header:x-api-key, ip]}
upstreams: {other: ${other}, api: ${api}}
routes: [{path: /other, upstream: other}, {path: /, upstream: api}]
`);
    const ask = ({ url }: { url: string }, path: string, key: string) =>
      send(url, path, { headers: ['X-Api-Key', key] });
    const rateOf = ({ sum }: { sum: (series: string) => Promise<number> }) =>
      sum('tidegate_ratelimit_rate_requests_per_second{upstream="other",scope="upstream"}');
    const first = await start();
    for (let n = 0; n < 30; n += 1) expect((await ask(first, '/other', 'busy')).status).toBe(200);
    expect((await ask(first, '/other', 'busy')).status).toBe(429);
    expect((await ask(first, '/', 'held')).status).toBe(429);
    const learned = await eventually(() => rateOf(first), Number.isFinite);
    // It is stored within ten seconds.
    await eventually(
      () => /"rate":[\d.]+.*"client":/.test(readFileSync(`${file}-wal`, 'latin1')),
      (isStored) => isStored,
      60_000,
    );
    for (const pid of [first.child.pid ?? 0, ...first.pids()]) process.kill(pid, 'SIGKILL');
    await first.ended;

    const second = await start();
    expect(second.log()).toContainEqual(expect.objectContaining({ msg: 'restored learned state' }));
    const known = await rateOf(second);
    expect(known).toBeGreaterThan(0.5 * learned);
    expect(known).toBeLessThan(2 * learned);
    const sent = upstream.hits.length;
    const held = await ask(second, '/', 'held');
    expect([held.status, Number(held.header('retry-after')) > 100]).toEqual([429, true]);
    expect(upstream.hits.length).toBe(sent);
    await ask(second, '/', 'new');
    expect(upstream.hits.length).toBe(sent + 1);
  },
  PATIENCE,
);
