/** Replicas share the keys of writes over Redis, also when one of them is killed or stopped, and when Redis is away. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { begin, send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
/** The lease of a replica, and time to notice its end. */
const LEASE_ENDS = 11_000;

interface Replica {
  readonly url: string;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<unknown>;
}

/** @param more further upstreams, and what follows them */
async function startReplica(redis: string, upstream: string, more = '}'): Promise<Replica> {
  const { child, ended, log } = startProcess([
    '--config',
    writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
state: {store: redis, url: "${redis}", timeout: 240ms}
upstreams: {api: ${upstream}, ${more}
`),
  ]);
  const [listening] = await eventually(
    () => log().filter(({ msg }) => msg === 'listening'),
    ({ length }) => length === 1,
  );
  return { url: String(listening?.['url']), signal: (signal) => child.kill(signal), ended };
}

async function startTwo(upstream: string, more?: string) {
  const redis = await startRedis();
  const [one, other] = await Promise.all([
    startReplica(redis.url, upstream, more),
    startReplica(redis.url, upstream, more),
  ]);
  return { redis, one, other };
}

function pay({ url }: Replica, key: string, more: readonly string[] = [], path = '/pay') {
  return send(url, path, { method: 'POST', body: key, headers: ['idempotency-key', key, ...more] });
}

describe('keys of writes that replicas share', () => {
  test(
    'two requests with one key reach the upstream one after the other, whichever replicas they reach',
    async () => {
      const inProgress = new Set<string>();
      let atOnce = 0;
      const upstream = await startHttpUpstream((_nth, response, { body }) => {
        const key = body.toString();
        if (inProgress.has(key)) atOnce += 1;
        inProgress.add(key);
        setTimeout(() => {
          inProgress.delete(key);
          response.end('paid');
        }, 100);
      });
      const { one, other } = await startTwo(`{url: "${upstream.url}"}`);
      const keys = Array.from({ length: 20 }, (_, i) => `order-${i}`);
      const answers = await Promise.all(keys.flatMap((key) => [pay(one, key), pay(other, key)]));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      expect([upstream.hits.length, atOnce]).toEqual([40, 0]);
    },
    PATIENCE,
  );

  test(
    'a key in use at one replica is refused by another, whose refusals do not deny the write',
    async () => {
      const held: ServerResponse[] = [];
      const upstream = await startHttpUpstream((_nth, response) => void held.push(response));
      const { one, other } = await startTwo(`{url: "${upstream.url}", idempotency: {concurrent: refuse}}`);
      const first = pay(one, 'order');
      await eventually(
        () => held.length,
        (count) => count === 1,
      );
      const refused = await pay(other, 'order');
      expect([refused.status, refused.json()['reason'], Number(refused.header('retry-after')) > 0]).toEqual([
        409,
        'key_in_use',
        true,
      ]);
      const denied = await pay(other, 'order', ['expect', 'payment']);
      expect([denied.status, denied.json()['reason'], denied.header('tidegate-outcome')]).toEqual([
        504,
        'expect',
        'unknown',
      ]);
      const unrelated = await pay(other, 'another order', ['expect', 'payment']);
      expect([unrelated.status, unrelated.header('tidegate-outcome')]).toEqual([417, undefined]);
      held[0]?.end('paid');
      expect((await first).status).toBe(200);
      // Redis has the end of the first request soon after its client.
      await eventually(
        async () => {
          const { status, header } = await pay(other, 'order', ['expect', 'payment']);
          return [status, header('tidegate-outcome')];
        },
        ([status, outcome]) => status === 417 && outcome === undefined,
      );
      expect(upstream.hits.length).toBe(1);
    },
    PATIENCE,
  );

  test(
    'a write whose replica is killed is unresolved: sent again while its key is valid, and not afterwards',
    async () => {
      const held: ServerResponse[] = [];
      const upstream = await startHttpUpstream((nth, response, { body }) => {
        if (body.toString() === 'prompt' || nth > 3) response.end('paid');
        else held.push(response);
      });
      const ttl = 'ttl: [{path: /pay, ttl: 2s}, {path: /charge, ttl: 1h}]';
      const { one, other } = await startTwo(`{url: "${upstream.url}", idempotency: {${ttl}}}`);
      expect((await pay(one, 'prompt')).status).toBe(200);
      const lost = Promise.allSettled([pay(one, 'order'), pay(one, 'charge', [], '/charge')]);
      await eventually(
        () => held.length,
        (count) => count === 2,
      );
      one.signal('SIGKILL');
      expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      // Nobody knows yet that its replica has ended.
      const early = await pay(other, 'order', ['expect', 'payment']);
      expect([early.status, early.header('tidegate-outcome')]).toEqual([504, 'unknown']);
      await pause(LEASE_ENDS);
      const late = await pay(other, 'order');
      expect([late.status, late.json()['reason'], late.header('tidegate-outcome')]).toEqual([
        409,
        'key_expired',
        'unknown',
      ]);
      const prompt = await pay(other, 'prompt');
      expect([prompt.status, prompt.json()['reason'], prompt.header('tidegate-outcome')]).toEqual([
        409,
        'key_expired',
        undefined,
      ]);
      expect(upstream.hits.length).toBe(3);
      expect((await pay(other, 'charge', [], '/charge')).status).toBe(200);
      expect(upstream.hits.length).toBe(4);
    },
    PATIENCE,
  );

  test(
    'a replica that was stopped for longer than its lease sends no write that another may have sent meanwhile',
    async () => {
      const upstream = await startHttpUpstream((_nth, response) => void response.end('paid'));
      // The second write waits for a rate while it has its key.
      const rate = 'rateLimit: {initialRate: 6/m, maxRate: 6/m}, queue: {maxWait: 2m}, timeout: 3m';
      const ttl = 'idempotency: {ttl: 5s}';
      const redis = await startRedis();
      // Both run before the first write, so that the second still waits when its replica is stopped.
      const elsewhere = await startReplica(redis.url, `{url: "${upstream.url}", ${ttl}}`);
      const one = await startReplica(redis.url, `{url: "${upstream.url}", ${rate}, ${ttl}, retry: {attempts: 1}}`);
      expect((await pay(one, 'first')).status).toBe(200);
      const waiting = pay(one, 'order');
      const client = redis.client();
      const readLeases = async () =>
        Promise.all((await client.keys('*:name:*')).map((name) => client.hget(name, 'leases')));
      // The end of the first write is stored after its client has the response.
      await eventually(
        readLeases,
        (leases) => leases.length === 2 && leases.filter((each) => each === '').length === 1,
      );
      one.signal('SIGSTOP');
      await pause(LEASE_ENDS);
      // The other replica takes it for ended, and does not send it, because its key has expired.
      const repeat = await pay(elsewhere, 'order');
      expect([repeat.status, repeat.header('tidegate-outcome')]).toEqual([409, 'unknown']);
      // Until its end is stored, the key is in use there.
      await eventually(readLeases, (leases) => leases.every((each) => each === ''));
      one.signal('SIGCONT');
      const { status, header } = await waiting;
      expect([status >= 400, header('tidegate-outcome')]).toEqual([true, 'unknown']);
      expect(upstream.hits.length).toBe(1);
    },
    PATIENCE,
  );

  test(
    'a response that is cut at one replica leaves the write unresolved at the other',
    async () => {
      const upstream = await startHttpUpstream((nth, response) => {
        if (nth > 1) return void response.end('paid');
        response.writeHead(200, { 'Content-Length': '1000' });
        response.write('pa');
        setTimeout(() => response.destroy(), 50);
      });
      const { one, other } = await startTwo(`{url: "${upstream.url}", idempotency: {ttl: 1s}}`);
      await expect(pay(one, 'order')).rejects.toThrow(/aborted|ECONNRESET|hang up/);
      await pause(1000);
      const repeat = await pay(other, 'order');
      expect([repeat.status, repeat.json()['reason'], repeat.header('tidegate-outcome')]).toEqual([
        409,
        'key_expired',
        'unknown',
      ]);
      expect(upstream.hits.length).toBe(1);
    },
    PATIENCE,
  );

  test.each(['ends', 'breaks off unnoticed'] as const)(
    'a response that one replica is still sending leaves the write open at the other, until it %s',
    async (end) => {
      const held: ServerResponse[] = [];
      const upstream = await startHttpUpstream((_nth, response) => {
        response.writeHead(201, { 'Content-Length': '8' }).write('paid');
        held.push(response);
      });
      const { one, other } = await startTwo(`{url: "${upstream.url}", idempotency: {ttl: 1s}}`);
      const first = begin(one.url, '/pay', { method: 'POST', body: 'order', headers: ['idempotency-key', 'order'] });
      const incoming = new Promise<IncomingMessage>((resolve) => first.once('response', resolve));
      first.end('order');
      (await incoming).on('error', () => undefined).resume();
      await pause(1000);
      // Before a claim of the key, and after it.
      const refuse = async () => {
        const answers = [await pay(other, 'order', ['expect', 'payment']), await pay(other, 'order')];
        return answers.map(({ status, header }) => header('tidegate-outcome') ?? status);
      };
      const unknown = ['unknown', 'unknown'];
      expect(await refuse()).toEqual(unknown);
      if (end === 'ends') {
        held[0]?.end('done');
        await eventually(refuse, ([before, after]) => before === 417 && after === 409);
      } else {
        one.signal('SIGSTOP'); // it cannot store that its client has gone
        first.destroy();
        expect(await refuse()).toEqual(unknown);
        await pause(LEASE_ENDS);
        expect(await refuse()).toEqual(unknown);
        one.signal('SIGCONT');
      }
      expect(upstream.hits.length).toBe(1);
    },
    PATIENCE,
  );

  test(
    'the last answer of a replica that is stopped is known to the others',
    async () => {
      const upstream = await startHttpUpstream((_nth, response) => void response.end('paid'));
      const { one, other } = await startTwo(`{url: "${upstream.url}", idempotency: {ttl: 1s}}`);
      const last = pay(one, 'order');
      await eventually(
        () => upstream.hits.length,
        (count) => count === 1,
        20_000,
        1,
      );
      one.signal('SIGTERM');
      expect((await last).status).toBe(200);
      await one.ended;
      await pause(1000);
      const { status, json, header } = await pay(other, 'order');
      expect([status, json()['reason'], header('tidegate-outcome')]).toEqual([409, 'key_expired', undefined]);
    },
    PATIENCE,
  );

  test(
    'while Redis is away, writes with keys are refused, and nothing else is',
    async () => {
      const upstream = await startHttpUpstream((_nth, response) => void response.end('done'));
      const lenient = `{url: "${upstream.url}", idempotency: {onStoreLost: local}}`;
      const routes = 'routes: [{path: /, upstream: api}, {path: /local, upstream: lenient}]';
      const { redis, one } = await startTwo(`{url: "${upstream.url}"}`, `lenient: ${lenient}}\n${routes}`);
      expect((await pay(one, 'order')).status).toBe(200);
      await redis.kill();
      const { status, json, header } = await pay(one, 'order');
      expect([status, json()['reason'], header('retry-after'), header('tidegate-outcome')]).toEqual([
        503,
        'key_store_lost',
        '1',
        'unknown',
      ]);
      expect((await send(one.url, '/read', { headers: ['Idempotency-Key', 'order'] })).status).toBe(200);
      expect((await send(one.url, '/write', { method: 'POST', body: 'x' })).status).toBe(200);
      const local = await pay(one, 'at hand', [], '/local');
      expect(local.status).toBe(200);
      await redis.restart();
      await eventually(
        async () => (await pay(one, 'another')).status,
        (answer) => answer === 200,
      );
    },
    PATIENCE,
  );
});
