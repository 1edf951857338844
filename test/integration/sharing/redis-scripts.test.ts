/** How the script handles lost or foreign data in its keys; and which keys it writes. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { LeaseRequest } from '../../../src/sharing/replicas/replica-protocol.ts';
import {
  encodeRequest,
  encodeSettings,
  decodeResponse,
  decodeBroadcast,
} from '../../../src/sharing/redis/lease-codec.ts';
import { loadLuaScript } from '../../../src/sharing/redis/lua-script.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import type { ScriptRunner, ScriptCall } from '../../support/redis/script-runner.ts';
import { millis, CHANNEL, openScriptRunner } from '../../support/redis/script-runner.ts';

const EPOCH = 1_700_000_000_000_000;
const LIMIT = 'till';
const SETTINGS: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 0.1,
  cooldown: 1000,
};
const CALL: LeaseRequest = {
  replicaId: 'a',
  now: millis(EPOCH),
  usage: [],
  leasedTokens: 0,
  inFlight: 0,
  unanswered: 0,
  want: 0,
  weight: 1,
  roundTrip: 1,
  known: {
    epoch: 0,
    since: Number.NEGATIVE_INFINITY,
    rate: Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
  },
  random: 0.5,
  waitingGroups: [],
  returningGroups: [],
};
type RedisClient = ReturnType<RedisServer['client']>;

const SENT = 1;
const REJECTED = 4;

/** @param at milliseconds after the first call */
function callAt(at: number, call: Partial<LeaseRequest> = {}): ScriptCall {
  const time = EPOCH + 1000 * at;
  return { settings: SETTINGS, time, call: { ...CALL, now: millis(time), ...call } };
}

function rejectedAt(at: number): readonly number[] {
  const now = millis(EPOCH + 1000 * at);
  return [REJECTED, now - 5, 1, Number.NaN, 1, 0, now];
}

async function open(): Promise<ScriptRunner> {
  return openScriptRunner((await startRedis()).client());
}

/** A limit at epoch 2, at 4.5 a second, with requests of two replicas in flight. */
async function begin(pool: ScriptRunner): Promise<void> {
  const sent = [SENT, 1, millis(EPOCH)];
  const answers = await pool.run(LIMIT, [
    callAt(0, { usage: sent, inFlight: 1 }),
    callAt(1, { replicaId: 'b', usage: [...sent, ...rejectedAt(1)], inFlight: 1 }),
  ]);
  expect(answers.at(-1)?.terms).toMatchObject({ epoch: 2, rate: 4.5, phase: 'backoff', inFlight: 2 });
}

/** The terms known to a replica that has received all of that. */
const KNOWN = { epoch: 2, since: millis(EPOCH + 1000), rate: 4.5, ceiling: 5 };

test.each([
  ['is gone', async ({ redis }: ScriptRunner, [state = '']: readonly string[]) => redis.del(state)],
  [
    'is of another version',
    async ({ redis }: ScriptRunner, [state = '']: readonly string[]) => redis.setrange(state, 0, '?'),
  ],
  [
    'is truncated',
    async ({ redis }: ScriptRunner, [state = '']: readonly string[]) => {
      await redis.set(state, (await redis.getBuffer(state))?.subarray(0, 100) ?? '');
    },
  ],
  [
    'is not a string',
    async ({ redis }: ScriptRunner, [state = '']: readonly string[]) => {
      await redis.del(state);
      await redis.sadd(state, 'x');
    },
  ],
  [
    'has lost its accounts',
    async ({ redis }: ScriptRunner, [, accounts = '']: readonly string[]) => redis.del(accounts),
  ],
  [
    'has lost the times of its reports',
    async ({ redis }: ScriptRunner, [, , lastSeen = '']: readonly string[]) => redis.del(lastSeen),
  ],
  [
    'has no hash of accounts',
    async ({ redis }: ScriptRunner, [, accounts = '']: readonly string[]) => redis.set(accounts, 'x'),
  ],
])('resets a limit that %s to the state of its caller', async (_what, spoil) => {
  const pool = await open();
  await begin(pool);
  await spoil(pool, pool.keys(LIMIT));
  const [answer] = await pool.run(LIMIT, [callAt(2, { inFlight: 1, known: KNOWN })]);
  expect(answer?.terms).toMatchObject({ epoch: 3, rate: 4.5, phase: 'cooldown', inFlight: 1 });
  // And continues from there.
  const [next] = await pool.run(LIMIT, [callAt(3, { replicaId: 'b', inFlight: 1, known: KNOWN })]);
  expect(next?.terms).toMatchObject({ epoch: 3, inFlight: 2 });
});

test('rejects a malformed call, and changes nothing', async () => {
  const pool = await open();
  await begin(pool);
  const kept = (): Promise<unknown[]> => Promise.all(pool.keys(LIMIT).map(async (key) => pool.redis.dumpBuffer(key)));
  const before = await kept();
  await expect(pool.run(LIMIT, [callAt(5000, { usage: [99] })])).rejects.toThrow('unknown kind of usage entry: 99');
  expect(await kept()).toEqual(before);
});

test('accepts more usage than fits on the Lua stack', async () => {
  const pool = await open();
  const usage = Array.from({ length: 5000 }, (_, i) => [SENT, i, millis(EPOCH)]).flat();
  const [answer] = await pool.run(LIMIT, [callAt(0, { usage, inFlight: 5000 })]);
  expect(answer?.terms).toMatchObject({ sendCount: 5000, inFlight: 5000 });
  // The script shifts all times, because the clock was set; and grants this number of tokens.
  const settings = { ...SETTINGS, initialRate: 1e6 };
  const call = { ...CALL, usage, now: CALL.now - 60_000, want: 5000, known: { ...KNOWN, epoch: 0 } };
  const [other] = await pool.run('other', [{ settings, time: EPOCH, call }]);
  expect(other?.terms.sendCount).toBe(5000);
  expect(other?.slots.length).toBe(5000);
});

test('sets an expiry on all keys: an hour for limits, seconds for groups that wait or are to return', async () => {
  const redis = (await startRedis()).client();
  const sha = String(await redis.script('LOAD', loadLuaScript().source));
  const keys = [1, 2, 3, 4, 5, 6, 7].map((part) => `{x}${part}`);
  const answer = await redis.callBuffer(
    'EVALSHA',
    sha,
    7,
    ...keys,
    encodeRequest({ ...CALL, waitingGroups: ['w'], returningGroups: ['r'] }),
    'a',
    encodeSettings(SETTINGS, false),
    '',
    '',
    'w',
    'r',
  );
  const { waitingReplicas, returningReplicas } = decodeResponse(Buffer.from(answer as Uint8Array));
  expect([waitingReplicas, returningReplicas]).toEqual([[1], [1]]);
  for (const key of ['{x}1', '{x}2', '{x}3']) {
    expect(await redis.pttl(key)).toBeGreaterThan(3_000_000);
    expect(await redis.pttl(key)).toBeLessThanOrEqual(3_600_000);
  }
  // One key each, for the present window.
  for (const [windows, longest] of [
    [['{x}4', '{x}5'], 1200],
    [['{x}6', '{x}7'], 4500],
  ] as const) {
    const left = await Promise.all(windows.map(async (key) => redis.pttl(key)));
    expect(left.filter((span) => span !== -2)).toHaveLength(1);
    expect(Math.max(...left)).toBeGreaterThan(0);
    expect(Math.max(...left)).toBeLessThanOrEqual(longest);
  }
});

/** Calls the script for a limit of a client, credential or path. Returns for how long its keys are kept. */
async function callKeyed(redis: RedisClient, name: string, call: Partial<LeaseRequest> = {}): Promise<number[]> {
  const keys = [1, 2, 3, 4, 5, 6, 7].map((part) => `{${name}}${part}`);
  const settings = encodeSettings({ ...SETTINGS, initialRate: 10, maxRate: 10 }, true);
  const script = [
    loadLuaScript().source,
    7,
    ...keys,
    encodeRequest({ ...CALL, waitingGroups: ['c'], ...call }),
    'a',
    settings,
    '',
    '',
    'c',
  ];
  // Within one transaction, no time passes for expiry.
  const transaction = redis.multi().call('EVAL', ...script);
  for (const key of keys.slice(0, 3)) transaction.pttl(key);
  const [answer, ...kept] = (await transaction.exec()) ?? [];
  if (answer?.[0] instanceof Error) throw answer[0];
  return kept.map(([, left]) => Number(left));
}

test('keeps limits of clients for seconds, and for longer with each request and once they were met', async () => {
  const redis = (await startRedis()).client();
  const { now } = CALL;
  const sends = (count: number): number[] => Array.from({ length: count }, (_, i) => [SENT, i, now]).flat();
  const rejected = [REJECTED, now, 1, Number.NaN, 1, 0, now];
  for (const [name, usage, most, least] of [
    ['unused', [], 3000, 1],
    ['once', sends(1), 4000, 1],
    ['once', sends(1), 5000, 1],
    ['used', sends(100), 103_000, 60_000],
    ['met', [...sends(2), ...rejected], 91_000, 60_000],
    ['often', sends(5000), 3_600_000, 3_000_000],
  ] as const) {
    for (const kept of await callKeyed(redis, name, { usage })) {
      expect(kept, name).toBeLessThanOrEqual(most);
      expect(kept, name).toBeGreaterThanOrEqual(least);
    }
  }
});

/** Sets the memory that Redis may use, so that this share of it is in use. */
async function limitMemory(redis: RedisClient, usedShare: number): Promise<void> {
  await redis.setrange('other', 32 * 1024 * 1024, 'x');
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  await redis.config('SET', 'maxmemory', String(Math.round(used / usedShare)));
}

test('makes no new limits of clients in the last tenth of the memory, which is for keys of writes', async () => {
  const redis = (await startRedis({ policy: 'noeviction' })).client();
  const pool = await openScriptRunner(redis);
  await callKeyed(redis, 'old');
  await limitMemory(redis, 0.85);
  await callKeyed(redis, 'first');
  await limitMemory(redis, 0.95);
  await expect(callKeyed(redis, 'second')).rejects.toThrow('OOM no memory for new limits');
  expect(await redis.keys('{second}*')).toEqual([]);
  // Known limits and those of the configuration continue, and keys can be stored.
  expect((await callKeyed(redis, 'old')).every((left) => left > 0)).toBe(true);
  expect(await pool.run(LIMIT, [callAt(0)])).toHaveLength(1);
  expect(await redis.set('key of a write', 'x')).toBe('OK');
});

test('writes nothing of a new limit while Redis has no memory left', async () => {
  const redis = (await startRedis({ policy: 'noeviction' })).client();
  const pool = await openScriptRunner(redis);
  await limitMemory(redis, 1.5);
  const call = callAt(0, { waitingGroups: ['c'], want: 1 });
  await expect(pool.run(LIMIT, [call])).rejects.toThrow('OOM');
  expect(await redis.exists(...pool.keys(LIMIT))).toBe(0);
});

test('keeps waiting clients only for the current and the previous interval', async () => {
  const pool = await open();
  const calls = Array.from({ length: 200 }, (_, i) =>
    callAt(100 * i, { replicaId: `holder-${i % 3}`, waitingGroups: [`client-${i}`, 'always'], want: 1 }),
  );
  const answers = await pool.run(LIMIT, calls);
  expect(answers.at(-1)?.waitingReplicas).toEqual([1, 3]);
  const [, , , even = '', odd = ''] = pool.keys(LIMIT);
  // Four calls an interval, with two fields for each client and one per replica; plus the shared client and three replicas.
  expect((await pool.redis.hlen(even)) + (await pool.redis.hlen(odd))).toBeLessThanOrEqual(2 * (1 + 4 * 3 + 5));
});

test('publishes each change once, with the limit’s id and the terms that the caller got', async () => {
  const server = await startRedis();
  const pool = await openScriptRunner(server.client());
  const listener = server.client();
  await listener.subscribe(CHANNEL);
  const broadcast = once(listener, 'messageBuffer');
  const [calm, cut] = await pool.run(LIMIT, [callAt(0), callAt(1, { usage: rejectedAt(1) })]);
  expect([calm?.shouldBroadcast, cut?.shouldBroadcast]).toEqual([false, true]);
  const message: unknown = (await broadcast).at(1);
  expect(message instanceof Buffer && decodeBroadcast(message)).toEqual({
    limitId: LIMIT,
    terms: cut?.terms,
    now: cut?.now,
  });
});

test('publishes as many numbers as other versions with this layout do, in the same places', async () => {
  const server = await startRedis();
  const pool = await openScriptRunner(server.client());
  const listener = server.client();
  await listener.subscribe(CHANNEL);
  const broadcast = once(listener, 'messageBuffer');
  const [, cut] = await pool.run(LIMIT, [callAt(0), callAt(1, { usage: rejectedAt(1) })]);
  const message: unknown = (await broadcast).at(1);
  if (!(message instanceof Buffer)) throw new Error('it is no message');
  const numbers = message.subarray(Buffer.byteLength(LIMIT) + 1);
  expect(numbers).toHaveLength(8 * 36);
  // Bits beyond 2, 4 and 8 of the flags are ignored, in an earlier version too.
  expect([0, 3, 8, 35].map((place) => numbers.readDoubleLE(8 * place))).toEqual([
    cut?.terms.epoch,
    cut?.terms.rate,
    0,
    cut?.now,
  ]);
});

test('ignores messages that are not broadcasts', () => {
  expect(decodeBroadcast(Buffer.alloc(0))).toBeUndefined();
  expect(decodeBroadcast(Buffer.from('anything that somebody may publish there'))).toBeUndefined();
  expect(decodeBroadcast(Buffer.alloc(130, 255))).toBeUndefined();
});

test('keeps all keys of a limit on one node of a cluster', async () => {
  const cluster = (await startCluster()).client();
  const { source } = loadLuaScript();
  const keys = [1, 2, 3, 4, 5, 6, 7].map((part) => `{x}${part}`);
  const args = [
    encodeRequest({ ...CALL, usage: rejectedAt(0), waitingGroups: ['c'] }),
    'a',
    encodeSettings(SETTINGS, false),
    CHANNEL,
    'x',
    'c',
  ];
  const answer: unknown = await cluster.call('EVAL', source, 7, ...keys, ...args);
  expect(typeof answer).toBe('string');
});
