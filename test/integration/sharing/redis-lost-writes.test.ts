/** A Redis that loses what it had acknowledged: it is killed, and comes back with an older copy of its data. */
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { connectKeys, openKeys, stateKeyOf } from '../../support/redis/stored-keys.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 120_000;
/** How long the upstream promises to remember a key, and how long it does. */
const TTL = 2000;
const REMEMBERED = 2 * TTL;

async function startStore() {
  const redis = await startRedis();
  const client = redis.client();
  return {
    url: redis.url,
    /** Of the write with this id. */
    versionOf: async (write: string) => {
      const [key = ''] = await client.keys(`tidegate:{api/keys}:k3:name:${write}*`);
      return client.hget(key, 'version');
    },
    /** From now on, all that is stored will be lost. */
    copy: () => client.save(),
    /** Its clients have reconnected. */
    loseAll: async (gates: readonly Tidegate[]) => {
      await redis.restart();
      for (const [n, gate] of gates.entries()) {
        await eventually(
          async () => (await pay(gate, `after the loss ${n}`)).status,
          (status) => status === 200,
          60_000,
        );
      }
    },
  };
}

function startReplica(redis: string, upstream: string, onStoreLost = 'refuse'): Promise<Tidegate> {
  const idempotency = `{ttl: ${TTL}ms, onStoreLost: ${onStoreLost}}`;
  return startTidegate(`
state: {store: redis, url: "${redis}", timeout: 240ms}
upstreams: {api: {url: "${upstream}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 1}, idempotency: ${idempotency}}}
`);
}

function pay({ url }: Tidegate, key: string) {
  return send(url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
}

function matching(found: unknown): number {
  return (found as { readonly matching: number }).matching;
}

const answered = (gate: Tidegate, count: number) =>
  eventually(
    () => gate.metric('tidegate_store_keys{store="redis",upstream="api",state="answered"}'),
    (known) => known === count,
  );

test(
  'a write whose record is lost is executed once more at most, whatever repeats follow, and no other write is',
  async () => {
    const executedAt = new Map<string, number[]>();
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      const key = body.toString();
      const times = executedAt.get(key) ?? [];
      const last = times.at(-1) ?? Number.NEGATIVE_INFINITY;
      if (performance.now() > last + REMEMBERED) executedAt.set(key, [...times, performance.now()]);
      response.end('paid');
    });
    const store = await startStore();
    const gates = [await startReplica(store.url, upstream.url), await startReplica(store.url, upstream.url)] as const;
    expect((await pay(gates[0], 'kept')).status).toBe(200);
    await answered(gates[0], 1);
    await store.copy();
    expect((await pay(gates[0], 'lost')).status).toBe(200);
    await answered(gates[0], 2);
    await store.loseAll(gates);

    await pause(REMEMBERED + 100);
    const statuses = async (key: string) => [(await pay(gates[1], key)).status, (await pay(gates[0], key)).status];
    expect(await statuses('kept')).toEqual([409, 409]);
    expect((await pay(gates[1], 'lost')).status).toBe(200);
    await pay(gates[0], 'lost'); // sent while the key is valid
    await pause(REMEMBERED + 100);
    expect(await statuses('lost')).toEqual([409, 409]);
    expect([executedAt.get('kept')?.length, executedAt.get('lost')?.length]).toEqual([1, 2]);
  },
  PATIENCE,
);

test(
  'the result of a request whose claim was lost does not replace what another replica has stored since',
  async () => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      if (body.toString() === 'order' && held.length === 0) held.push(response);
      else response.end('paid');
    });
    const store = await startStore();
    const relay = await startRelay(store.url.replace('redis:', 'http:'));
    onTestFinished(() => relay.close());
    const cut = `redis://127.0.0.1:${relay.port}`;
    const gates = [await startReplica(cut, upstream.url), await startReplica(store.url, upstream.url)] as const;
    await store.copy();
    const first = pay(gates[0], 'order');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    await relay.refuse(); // so it cannot store its claim again before the repeat
    await store.loseAll([gates[1]]);
    const sent = () => upstream.hits.filter(({ body }) => body.toString() === 'order').length;
    const repeat = await pay(gates[1], 'order');
    expect([repeat.status, sent()]).toEqual([200, 2]);
    const write = String(gates[1].requests().at(-1)?.['write']);
    const keysIn = async (state: string): Promise<unknown> =>
      (await fetch(`${gates[1].adminUrl}/api/keys?state=${state}&id=${write}`)).json();
    await eventually(
      () => keysIn('answered'),
      (found) => matching(found) === 1,
    );
    const version = await store.versionOf(write);
    await relay.accept();
    held[0]?.destroy(); // its outcome is unknown
    expect((await first).header('tidegate-outcome')).toBe('unknown');
    // Its first attempt to store that names the lost version. The next one adds it to what the other replica has stored.
    await eventually(
      () => store.versionOf(write),
      (next) => next !== version,
    );
    await eventually(
      async () => [matching(await keysIn('answered')), matching(await keysIn('open'))].join(' '),
      (counts) => counts === '1 0',
    );
  },
  PATIENCE,
);

test.each(['refuse', 'local'])(
  'a write that only the lost state named is no new one for a repeat at the replica that sent it, with `onStoreLost: %s`',
  async (onStoreLost) => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      if (body.toString() !== 'order') response.end('paid');
      else if (held.length === 0) held.push(response);
      else response.writeHead(403).end();
    });
    const sent = () => upstream.hits.filter(({ body }) => body.toString() === 'order').length;
    const store = await startStore();
    const gate = await startReplica(store.url, upstream.url, onStoreLost);
    await pay(gate, 'before');
    await answered(gate, 1);
    await store.copy();
    const first = pay(gate, 'order');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    const keys = (query = '') => fetch(`${gate.adminUrl}/api/keys${query}`);
    /** With `local`, a write gets its response before Redis responds again. */
    const loseAll = async () => {
      await store.loseAll([gate]);
      await eventually(
        async () => (await keys()).ok,
        (isBack) => isBack,
        60_000,
      );
    };
    await loseAll();
    const second = pay(gate, 'order');
    await eventually(
      async () => matching(await (await keys('?state=in_progress')).json()),
      (count) => count === 1,
    );
    expect(sent()).toBe(1); // the second waits for the first
    held[0]?.destroy();
    const outcomes = [await first, await second].map(({ status, header }) => [status, header('tidegate-outcome')]);
    expect(outcomes[0]).toEqual([504, 'unknown']);
    expect(outcomes[1]?.[1]).toBe('unknown'); // 504, or 409 after the ttl, or 503 if Redis was slow
    await loseAll();
    await pause(TTL);
    const before = sent();
    const expired = await pay(gate, 'order');
    expect([expired.header('tidegate-outcome'), sent()]).toEqual(['unknown', before]); // 409, or 503 if Redis was slow
  },
  PATIENCE,
);

test('an owner of an older version cannot change what others have stored after the loss', async () => {
  const redis = await startRedis();
  const client = await connectKeys(redis);
  const { store, swap, nextVersion } = openKeys(client);
  const before = await store(0, 'claimed', { owner: 'old' });
  await client.save();
  const lost = nextVersion();
  const released = { state: before.session.state, unresolvedOwner: 1 };
  expect(await swap(0, released, { expected: before.version, next: lost }, { owner: 'old' })).toEqual({
    kind: 'stored',
  });
  await redis.restart();
  await client.ping();
  // It has the older version again, so a change of the lost one is refused.
  const again = await swap(0, released, { expected: lost, next: nextVersion() }, { owner: 'old' });
  expect(again).toMatchObject({ kind: 'changed', found: { version: before.version } });
  const others = nextVersion();
  expect(await swap(0, released, { expected: before.version, next: others }, { owner: 'new' })).toEqual({
    kind: 'stored',
  });
  const late = await swap(0, released, { expected: before.version, next: nextVersion() }, { owner: 'old' });
  expect(late).toMatchObject({ kind: 'changed', found: { version: others } });
  expect(await client.hget(stateKeyOf(0), 'version')).toBe(others);
  // Nothing is known of a write that was first sent after the copy.
  const gone = await swap(1, released, { expected: lost, next: nextVersion() }, { owner: 'old' });
  expect(gone).toMatchObject({ kind: 'changed', found: { version: NO_VERSION } });
});

test('a process that is closed while Redis is gone stops trying to store the end of a write', async () => {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_nth, response) => void held.push(response));
  const redis = await startRedis();
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  const gate = await startReplica(redis.url, upstream.url);
  const paid = pay(gate, 'order');
  await eventually(
    () => held,
    ({ length }) => length === 1,
  );
  await redis.kill();
  held[0]?.end('paid');
  expect((await paid).status).toBe(200);
  await gate.close();
  const mostInOneSecond = async (): Promise<number> => {
    let most = 0;
    for (let i = 0; i < 40; i += 1) {
      await pause(25);
      most = Math.max(most, timers());
    }
    return most;
  };
  await eventually(mostInOneSecond, (most) => most <= before, 20_000);
});
