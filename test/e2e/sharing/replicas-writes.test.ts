/** Replicas send writes later from one Redis, although they and Redis are killed. */
import type { ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { type Received, send } from '../../support/clients/send.ts';
import { headerOf, startLedger } from '../../support/deliveries/ledger-upstream.ts';
import { freePort } from '../../support/free-port.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
/** Nothing that Redis has acknowledged is lost if it is killed. */
const DURABLE = { settings: { appendonly: 'yes', appendfsync: 'always' } };
const SECOND = '1s';

interface Upstreams {
  readonly redis: string;
  readonly psp: string;
  readonly shop: string;
}

function replicaConfig(port: number, { redis, psp, shop }: Upstreams): string {
  const delays = (count: number): string => Array.from({ length: count }, () => SECOND).join(', ');
  return writeConfigFile(`
listen: 127.0.0.1:${port}
admin: 127.0.0.1:0
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${redis}", timeout: 240ms}
limits: {overload: {eventLoopDelay: 1h}}
upstreams:
  psp: {url: "${psp}", retry: {attempts: 1}, idempotency: {ttl: 24h}}
  shop: {url: "${shop}"}
routes:
  - {path: /long, upstream: psp, async: {schedule: {delays: [${delays(200)}]}, concurrency: 50, callback: /callbacks}}
  - {path: /short, upstream: psp, async: {schedule: {delays: [${delays(2)}]}, concurrency: 50, callback: /callbacks}}
  - {path: /callbacks, upstream: shop, deliver: {schedule: {delays: [${delays(200)}]}, concurrency: 50}}
`);
}

async function startReplicas(upstreams: Upstreams) {
  const ports = [await freePort(), await freePort()];
  const configs = ports.map((port) => replicaConfig(port, upstreams));
  const start = (i: number) => startProcess(['--config', configs[i] ?? '']);
  const replicas = ports.map((_, i) => start(i));
  return { replicas, start, urlOf: (i: number) => `http://127.0.0.1:${ports[i % 2]}` };
}

function charge(url: string, path: string, key: string): Promise<Received> {
  const headers = ['Idempotency-Key', key, 'Prefer', 'respond-async', 'Tidegate-Callback', `/callbacks/${key}`];
  return send(url, path, { method: 'POST', headers, body: JSON.stringify({ key }) });
}

/** The state of a write, as a replica shows it. */
function readState(url: string, location: string): Promise<Record<string, unknown>> {
  return send(url, location).then(
    (response) => response.json(),
    () => ({}),
  );
}

const ENDS: ReadonlySet<unknown> = new Set(['done', 'failed', 'unknown']);
const isOver = ({ state }: Record<string, unknown>): boolean => ENDS.has(state);

/** What the provider does with a write. */
type Kind =
  /** It charges, although not at once: some requests get a 503, and some no response. */
  | 'charged'
  /** It charges, breaks the connection, and refuses each repeat. */
  | 'lost'
  /** It refuses each request. */
  | 'refused';

/** A provider that charges once for each key. While it holds, it charges, and responds to nobody. */
async function startProvider(random: () => number) {
  const charges = new Map<string, number>();
  const present = new Map<string, number>();
  const state = { isHolding: false, mostAtOnce: 0 };
  let held: (() => void)[] = [];
  const respond = (response: ServerResponse, key: string, isReplayed: boolean): void => {
    response.writeHead(201, isReplayed ? { 'Idempotent-Replayed': 'true' } : {}).end(JSON.stringify({ charge: key }));
  };
  const upstream = await startHttpUpstream((_n, response, hit) => {
    const key = headerOf(hit, 'idempotency-key') ?? 'none';
    const kind = key.split('-')[0];
    const atOnce = (present.get(key) ?? 0) + 1;
    present.set(key, atOnce);
    state.mostAtOnce = Math.max(state.mostAtOnce, atOnce);
    response.on('close', () => present.set(key, (present.get(key) ?? 1) - 1));
    const isCharged = charges.has(key);
    if (kind === 'refused' || (kind === 'lost' && isCharged)) return void response.writeHead(503).end();
    if (isCharged) return respond(response, key, true);
    const luck = random();
    if (kind === 'charged' && luck < 0.3 && !state.isHolding) return void response.writeHead(503).end();
    charges.set(key, 1);
    if (kind === 'lost' || (luck < 0.6 && !state.isHolding)) return void response.destroy();
    if (state.isHolding) return void held.push(() => respond(response, key, false));
    respond(response, key, false);
  });
  return {
    ...{ url: upstream.url, charges, state },
    held: () => held.length,
    release: () => {
      state.isHolding = false;
      for (const run of held) run();
      held = [];
    },
  };
}

test(
  'kill -9 of replicas and of Redis charges no write twice, reports none as failed that was charged, and loses no callback',
  async () => {
    const random = seededRandom(11);
    const provider = await startProvider(random);
    const callbacks = new Map<string, unknown[]>();
    const shop = await startHttpUpstream((_n, response, { target, body }) => {
      const isTaken = random() < 0.5;
      const key = target.slice('/callbacks/'.length);
      if (isTaken) callbacks.set(key, [...(callbacks.get(key) ?? []), JSON.parse(body.toString())]);
      response.writeHead(isTaken ? 204 : 500).end();
    });
    const redis = await startRedis(DURABLE);
    const { replicas, start, urlOf } = await startReplicas({ redis: redis.url, psp: provider.url, shop: shop.url });

    const kinds: readonly Kind[] = ['charged', 'charged', 'charged', 'lost', 'refused'];
    const keys = Array.from({ length: 100 }, (_, n) => `${kinds[n % kinds.length]}-${n}`);
    const locations = new Map<string, Set<string>>();
    let next = 0;
    /** As a client does: again with the same key, at one replica or the other, until the write is accepted. */
    const clients = Array.from({ length: 4 }, async () => {
      while (next < keys.length) {
        const n = next++;
        const key = keys[n] ?? '';
        const path = key.startsWith('charged') ? '/long' : '/short';
        let tries = n;
        const accept = () => charge(urlOf((tries += 1)), path, key).catch(() => undefined);
        const accepted = await eventually(accept, (response) => response?.status === 202);
        // A repeat at the other replica is the same write.
        const repeated = await eventually(accept, (response) => response?.status === 202);
        locations.set(key, new Set([accepted, repeated].map((response) => response?.header('location') ?? '')));
      }
    });
    const killReplica = async (i: number): Promise<void> => {
      replicas[i]?.child.kill('SIGKILL');
      await replicas[i]?.ended;
      replicas[i] = start(i);
    };
    const faults = [() => killReplica(0), () => redis.restart(), () => killReplica(1)];
    for (const [i, cause] of faults.entries()) {
      await eventually(
        () => next,
        (sent) => sent >= ((i + 1) * keys.length) / (faults.length + 1),
      );
      provider.state.isHolding = true;
      const least = 1 + Math.floor(3 * random());
      await eventually(provider.held, (held) => held >= least);
      await cause();
      provider.release();
    }
    await Promise.all(clients);

    const ends = new Map<string, Record<string, unknown>>();
    for (const [n, key] of keys.entries()) {
      const [location = '', ...others] = locations.get(key) ?? [];
      expect([key, others]).toEqual([key, []]);
      ends.set(key, await eventually(() => readState(urlOf(n), location), isOver, PATIENCE));
    }
    const stateOf = (key: string): unknown => ends.get(key)?.['state'];
    const of = (kind: Kind): readonly string[] => keys.filter((key) => key.startsWith(kind));
    expect(keys.filter((key) => stateOf(key) === 'failed' && provider.charges.has(key))).toEqual([]);
    expect(of('charged').filter((key) => stateOf(key) !== 'done')).toEqual([]);
    for (const key of of('charged')) {
      expect(ends.get(key)?.['response']).toMatchObject({ status: 201, body: `{"charge":"${key}"}` });
    }
    // Their schedules are short: while the upstream is blocked, all attempts of a write may be refused by Tidegate.
    const lost = of('lost').filter((key) => provider.charges.has(key));
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.map((key) => [key, stateOf(key)])).toEqual(lost.map((key) => [key, 'unknown']));
    const notCharged = keys.filter((key) => !provider.charges.has(key));
    expect(notCharged.filter((key) => stateOf(key) === 'done')).toEqual([]);
    expect([...provider.charges.keys()].toSorted()).toEqual([...of('charged'), ...lost].toSorted());
    // A key protects the write: no two requests with it are sent at once.
    expect(provider.state.mostAtOnce).toBe(1);
    // A write that was repeated after its end has another end, and another callback.
    await eventually(
      () => keys.filter((key) => !callbacks.get(key)?.some((each) => isDeepStrictEqual(each, ends.get(key)))),
      (missing) => missing.length === 0,
      PATIENCE,
    );
  },
  PATIENCE,
);

async function holdFirst() {
  const redis = await startRedis(DURABLE);
  const ledger = await startLedger();
  ledger.state.mode = 'hold';
  const shop = await startHttpUpstream((_n, response) => void response.writeHead(204).end());
  const { replicas, urlOf } = await startReplicas({ redis: redis.url, psp: ledger.url, shop: shop.url });
  await eventually(
    () => replicas.map((each) => each.log().some(({ msg }) => msg === 'listening')),
    (listening) => listening.every(Boolean),
  );
  const accepted = await charge(urlOf(0), '/short', 'k1');
  expect(accepted.status).toBe(202);
  await eventually(
    () => ledger.held.length,
    (held) => held === 1,
  );
  const [first, second] = replicas;
  const read = () => readState(urlOf(1), accepted.header('location') ?? '');
  return { ledger, first, second, read, urlOf };
}

test(
  'a write that a replica was sending as it was killed is sent by another one, and charged once',
  async () => {
    const { ledger, first, read } = await holdFirst();
    first?.child.kill('SIGKILL');
    const done = await eventually(read, isOver, PATIENCE);
    expect(done).toMatchObject({ state: 'done', attempts: 1, response: { status: 201, body: '{"charge":"k1"}' } });
    expect([[...ledger.charges], ledger.hits.length]).toEqual([[['k1', 1]], 2]);
  },
  PATIENCE,
);

test(
  'a write that a suspended replica was sending is unknown, not failed, if the provider refuses it from then on',
  async () => {
    const { ledger, first, read, urlOf } = await holdFirst();
    ledger.state.mode = 'unavailable';
    first?.child.kill('SIGSTOP');
    const unknown = await eventually(read, isOver, PATIENCE);
    expect(unknown).toMatchObject({ state: 'unknown' });
    expect(JSON.stringify(unknown['lastAttempt'])).toContain('"reason":"unknown_');
    first?.child.kill('SIGCONT');
    // What it reports is ignored, whatever it reports.
    for (const response of ledger.held) response.writeHead(400).end();
    await eventually(
      () =>
        first
          ?.log()
          .some(({ msg, outcome, route }) => msg === 'request' && route === '/short' && outcome !== 'accepted'),
      (hasEnded) => hasEnded === true,
    );
    expect((await charge(urlOf(0), '/short', 'k2')).status).toBe(202);
    expect(await read()).toEqual(unknown);
  },
  PATIENCE,
);
