/** Workers, and replicas over Redis, share the quarantine of an account. */
import type { Agent } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers, workerOf } from '../../support/proxy/workers.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import {
  accept,
  reject,
  startAccountUpstream,
  type AccountUpstream,
} from '../../support/upstreams/account-upstream.ts';

/** Milliseconds. Only what hangs takes as long. */
const PATIENCE = 120_000;

/** A cache has stored this 401 of an earlier request: no process that receives it excludes a client. */
const REJECT_FROM_CACHE = reject(401, { Age: '5' });

const QUARANTINED = 'tidegate_account_quarantined{upstream="api",account="main"}';

function upstreamOf({ url }: AccountUpstream, interval: string): string {
  return `
clients: {key: ["header:X-Client", ip]}
upstreams:
  api:
    url: "${url}"
    retry: {attempts: 1}
    accounts: [{name: main, value: "Bearer of-main"}]
    accountQuarantine: {interval: ${interval}}
`;
}

/** Returns the status of a response to this client. */
async function ask(url: string, client: string, agent?: Agent): Promise<number> {
  return (await send(url, '/', { headers: ['X-Client', client], ...(agent && { agent }) })).status;
}

test(
  'each worker excludes a client whose requests were rejected at one of them, until one of them has a request accepted',
  async () => {
    const upstream = await startAccountUpstream({ 'of-main': accept });
    const { url } = await startWorkers(`workers: 2${upstreamOf(upstream, '10m')}`);
    const agents = new Map<string, Agent>();
    await eventually(
      async () => {
        const agent = keepAlive();
        onTestFinished(() => agent.destroy());
        await ask(url, 'one', agent);
        agents.set(workerOf({ headers: upstream.received.at(-1)?.rawHeaders ?? [] }), agent);
        return agents.size;
      },
      (count) => count === 2,
      PATIENCE,
    );
    const [here, there] = [...agents.values()];
    upstream.set('of-main', reject(401));
    for (let i = 0; i < 3; i += 1) expect(await ask(url, 'one', here)).toBe(401);
    upstream.set('of-main', REJECT_FROM_CACHE);
    await eventually(
      () => ask(url, 'one', there),
      (status) => status === 503,
      PATIENCE,
    );
    expect([await ask(url, 'one', here), await ask(url, 'two', here), await ask(url, 'two', there)]).toEqual([
      503, 401, 401,
    ]);
    upstream.set('of-main', accept);
    expect(await ask(url, 'two', there)).toBe(200);
    await eventually(
      () => ask(url, 'one', here),
      (status) => status === 200,
      PATIENCE,
    );
  },
  PATIENCE,
);

async function startReplicas(redis: { readonly url: string }, upstream: AccountUpstream, interval: string) {
  const start = (): Promise<Tidegate> =>
    startTidegate(`state: {store: redis, url: "${redis.url}", timeout: 240ms}${upstreamOf(upstream, interval)}`);
  const [first, second] = [await start(), await start()];
  const whenAll = (replicas: readonly Tidegate[], isQuarantined: boolean): Promise<unknown> =>
    eventually(
      () => Promise.all(replicas.map((each) => each.metric(QUARANTINED))),
      (all) => all.every((value) => value === Number(isQuarantined)),
      PATIENCE,
    );
  return { start, first, second, whenAll };
}

test.each([
  ['Redis', startRedis],
  ['a Redis Cluster', startCluster],
] as const)(
  'replicas over %s exclude the client, one that starts later too, until one of them has a request accepted',
  async (_, startServer) => {
    const redis = await startServer();
    const upstream = await startAccountUpstream({ 'of-main': reject(401) });
    const { start, first, second, whenAll } = await startReplicas(redis, upstream, '10m');
    for (let i = 0; i < 3; i += 1) expect(await ask(first.url, 'one')).toBe(401);
    await whenAll([first, second], true);
    const client = redis.client();
    await eventually(
      () => client.hlen('tidegate:{quarantines}'),
      (count) => count === 1,
    );
    const late = await start();
    await whenAll([late], true);
    const replicas = [first, second, late];
    upstream.set('of-main', REJECT_FROM_CACHE);
    expect(await Promise.all(replicas.map(({ url }) => ask(url, 'one')))).toEqual([503, 503, 503]);
    expect(await Promise.all(replicas.map(({ url }) => ask(url, 'two')))).toEqual([401, 401, 401]);
    // A process that learns of the quarantine from another one logs neither it nor its end.
    expect(second.log().filter(({ msg }) => String(msg).startsWith('account '))).toEqual([]);
    upstream.set('of-main', accept);
    expect(await ask(late.url, 'two')).toBe(200);
    await whenAll(replicas, false);
    const messages = replicas.map((each) => each.log().map(({ msg }) => msg));
    expect(messages.map((all) => all.filter((msg) => msg === 'account back in service').length)).toEqual([1, 0, 1]);
    expect(await Promise.all(replicas.map(({ url }) => ask(url, 'one')))).toEqual([200, 200, 200]);
    await eventually(
      () => client.hlen('tidegate:{quarantines}'),
      (count) => count === 0,
    );
  },
  PATIENCE,
);

test(
  'a replica that gets an account by a reload excludes the client that another one excludes, and one that loses it leaves none',
  async () => {
    const redis = await startRedis();
    const upstream = await startAccountUpstream({ 'of-main': reject(401), 'of-spare': accept });
    const yaml = (account: string): string =>
      `state: {store: redis, url: "${redis.url}", timeout: 240ms}${upstreamOf(upstream, '10m').replaceAll('main', account)}`;
    const first = await startTidegate(yaml('main'));
    for (let i = 0; i < 3; i += 1) expect(await ask(first.url, 'one')).toBe(401);
    const client = redis.client();
    const whenStored = (stored: number): Promise<unknown> =>
      eventually(
        () => client.hlen('tidegate:{quarantines}'),
        (count) => count === stored,
        PATIENCE,
      );
    await whenStored(1);
    const second = await startTidegate(yaml('spare'));
    expect(await ask(second.url, 'one')).toBe(200);
    await second.rewrite(yaml('main'));
    await eventually(
      () => second.metric(QUARANTINED),
      (value) => value === 1,
      PATIENCE,
    );
    upstream.set('of-main', REJECT_FROM_CACHE);
    expect(await ask(second.url, 'one')).toBe(503);
    for (const each of [first, second]) await each.rewrite(yaml('main').replaceAll('api', 'other'));
    await whenStored(0);
  },
  PATIENCE,
);

interface Status {
  readonly upstreams: readonly { readonly accounts: readonly { readonly nextProbe: string | null }[] }[];
}

/** When a replica sends its next probe; 0 without a quarantine. */
async function nextProbeOf({ adminUrl }: Tidegate): Promise<number> {
  const { upstreams } = (await (await fetch(`${adminUrl}/api/status`)).json()) as Status;
  return Date.parse(upstreams[0]?.accounts[0]?.nextProbe ?? '1970-01-01');
}

test(
  'replicas over Redis delay their next probe when one of them sends one, and when that has failed',
  async () => {
    const upstream = await startAccountUpstream({ 'of-main': reject(401) });
    const { first, second, whenAll } = await startReplicas(await startRedis(), upstream, '1s');
    for (let i = 0; i < 3; i += 1) expect(await ask(first.url, 'one')).toBe(401);
    await whenAll([first, second], true);
    const atStart = await nextProbeOf(second);
    const held = Promise.withResolvers<undefined>();
    upstream.set('of-main', (response, request) => void held.promise.then(() => reject(401)(response, request)));
    const probes: Promise<number>[] = [];
    await eventually(
      () => {
        probes.push(ask(first.url, 'one'));
        return upstream.received.length;
      },
      (count) => count > 3,
      PATIENCE,
    );
    const afterProbe = await eventually(
      () => nextProbeOf(second),
      (at) => at >= atStart + 500,
      PATIENCE,
    );
    held.resolve(undefined);
    // The interval is now 2 s: the next probe follows that long after the rejection, which came after the probe.
    await eventually(
      () => nextProbeOf(second),
      (at) => at >= afterProbe + 500,
      PATIENCE,
    );
    await Promise.all(probes);
  },
  PATIENCE,
);
