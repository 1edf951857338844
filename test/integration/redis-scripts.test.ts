/** What the scripts make of a Redis that has lost something, or has something else in its keys; and what they leave there. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import type { Call } from '../../src/sharing/replicas/replica-protocol.ts';
import { packCall, packSettings, readAnswer, readNews } from '../../src/sharing/redis/lease-codec.ts';
import { readScripts } from '../../src/sharing/redis/lua-scripts.ts';
import { startCluster } from '../support/redis-cluster.ts';
import { startRedis } from '../support/redis-server.ts';
import type { ScriptPool, Told } from '../support/script-pool.ts';
import { millis, NEWS, openScriptPool } from '../support/script-pool.ts';

const EPOCH = 1_700_000_000_000_000;
const LIMIT = 'till';
const SETTINGS: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 0.1,
  cooldown: 1000,
};
const CALL: Call = {
  holder: 'a',
  now: millis(EPOCH),
  happenings: [],
  lent: 0,
  inFlight: 0,
  want: 0,
  weight: 1,
  roundTrip: 1,
  known: {
    epoch: 0,
    since: Number.NEGATIVE_INFINITY,
    rate: Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
  },
  chance: 0.5,
  clients: [],
};
const SENT = 1;
const REJECTED = 4;

/** @param at milliseconds after the first call */
function told(at: number, call: Partial<Call> = {}): Told {
  const time = EPOCH + 1000 * at;
  return { settings: SETTINGS, time, call: { ...CALL, now: millis(time), ...call } };
}

function rejectedAt(at: number): readonly number[] {
  const now = millis(EPOCH + 1000 * at);
  return [REJECTED, now - 5, 1, Number.NaN, 1, 0, now];
}

async function open(): Promise<ScriptPool> {
  return openScriptPool((await startRedis()).client());
}

/** A limit at epoch 2, at 4.5 a second, of which two holders have something in flight. */
async function begin(pool: ScriptPool): Promise<void> {
  const sent = [SENT, 1, millis(EPOCH)];
  const answers = await pool.play(LIMIT, [
    told(0, { happenings: sent, inFlight: 1 }),
    told(1, { holder: 'b', happenings: [...sent, ...rejectedAt(1)], inFlight: 1 }),
  ]);
  expect(answers.at(-1)?.terms).toMatchObject({ epoch: 2, rate: 4.5, phase: 'backoff', inFlight: 2 });
}

/** What a caller knows that has heard of all that. */
const KNOWN = { epoch: 2, since: millis(EPOCH + 1000), rate: 4.5, ceiling: 5 };

test.each([
  ['is gone', async ({ redis }: ScriptPool, [state = '']: readonly string[]) => redis.del(state)],
  [
    'is of another version',
    async ({ redis }: ScriptPool, [state = '']: readonly string[]) => redis.setrange(state, 0, '?'),
  ],
  [
    'is cut short',
    async ({ redis }: ScriptPool, [state = '']: readonly string[]) => {
      await redis.set(state, (await redis.getBuffer(state))?.subarray(0, 100) ?? '');
    },
  ],
  [
    'is not a string',
    async ({ redis }: ScriptPool, [state = '']: readonly string[]) => {
      await redis.del(state);
      await redis.sadd(state, 'x');
    },
  ],
  ['has lost its accounts', async ({ redis }: ScriptPool, [, accounts = '']: readonly string[]) => redis.del(accounts)],
  [
    'has lost when they were heard',
    async ({ redis }: ScriptPool, [, , heard = '']: readonly string[]) => redis.del(heard),
  ],
  [
    'has no hash of accounts',
    async ({ redis }: ScriptPool, [, accounts = '']: readonly string[]) => redis.set(accounts, 'x'),
  ],
])('a limit that %s begins anew, where its caller stands', async (_what, spoil) => {
  const pool = await open();
  await begin(pool);
  await spoil(pool, pool.keys(LIMIT));
  const [answer] = await pool.play(LIMIT, [told(2, { inFlight: 1, known: KNOWN })]);
  expect(answer?.terms).toMatchObject({ epoch: 3, rate: 4.5, phase: 'cooldown', inFlight: 1 });
  // And goes on from there.
  const [next] = await pool.play(LIMIT, [told(3, { holder: 'b', inFlight: 1, known: KNOWN })]);
  expect(next?.terms).toMatchObject({ epoch: 3, inFlight: 2 });
});

test('a call that cannot be read is refused, and changes nothing', async () => {
  const pool = await open();
  await begin(pool);
  const kept = (): Promise<unknown[]> => Promise.all(pool.keys(LIMIT).map(async (key) => pool.redis.dumpBuffer(key)));
  const before = await kept();
  await expect(pool.play(LIMIT, [told(5000, { happenings: [99] })])).rejects.toThrow(
    'nothing happens by the number 99',
  );
  expect(await kept()).toEqual(before);
});

test('more happenings than Lua has room for on its stack', async () => {
  const pool = await open();
  const happenings = Array.from({ length: 5000 }, (_, i) => [SENT, i, millis(EPOCH)]).flat();
  const [answer] = await pool.play(LIMIT, [told(0, { happenings, inFlight: 5000 })]);
  expect(answer?.terms).toMatchObject({ sends: 5000, inFlight: 5000 });
  // Moved by a clock that was set, and answered with as many tokens.
  const settings = { ...SETTINGS, initialRate: 1e6 };
  const call = { ...CALL, happenings, now: CALL.now - 60_000, want: 5000, known: { ...KNOWN, epoch: 0 } };
  const [other] = await pool.play('other', [{ settings, time: EPOCH, call }]);
  expect(other?.terms.sends).toBe(5000);
  expect(other?.slots.length).toBe(5000);
});

test('all keys expire: those of a limit in an hour, those of who waits in seconds', async () => {
  const redis = (await startRedis()).client();
  const sha = String(await redis.script('LOAD', readScripts().lease));
  const keys = ['{x}1', '{x}2', '{x}3', '{x}4', '{x}5'];
  const answer = await redis.callBuffer(
    'EVALSHA',
    sha,
    5,
    ...keys,
    packCall(CALL),
    'a',
    packSettings(SETTINGS),
    '',
    '',
    'c',
  );
  expect(readAnswer(Buffer.from(answer as Uint8Array)).waitsWith).toEqual([1]);
  const spans = (await redis.keys('*')).filter((key) => !['{x}1', '{x}2', '{x}3'].includes(key));
  expect(spans).toHaveLength(1);
  for (const key of ['{x}1', '{x}2', '{x}3']) {
    expect(await redis.pttl(key)).toBeGreaterThan(3_000_000);
    expect(await redis.pttl(key)).toBeLessThanOrEqual(3_600_000);
  }
  expect(await redis.pttl(spans[0] ?? '')).toBeLessThanOrEqual(1200);
  expect(await redis.pttl(spans[0] ?? '')).not.toBe(-1);
});

test('of who waits nothing is kept but of this span and the one before', async () => {
  const pool = await open();
  const calls = Array.from({ length: 200 }, (_, i) =>
    told(100 * i, { holder: `holder-${i % 3}`, clients: [`client-${i}`, 'always'], want: 1 }),
  );
  const answers = await pool.play(LIMIT, calls);
  expect(answers.at(-1)?.waitsWith).toEqual([1, 3]);
  const [, , , even = '', odd = ''] = pool.keys(LIMIT);
  // Four calls a span: of each its client twice and its holder; of the one they share twice, and three holders.
  expect((await pool.redis.hlen(even)) + (await pool.redis.hlen(odd))).toBeLessThanOrEqual(2 * (1 + 4 * 3 + 5));
});

test('news is published once, with the name it was given and the terms that the caller heard', async () => {
  const server = await startRedis();
  const pool = await openScriptPool(server.client());
  const listener = server.client();
  await listener.subscribe(NEWS);
  const heard = once(listener, 'messageBuffer');
  const [calm, cut] = await pool.play(LIMIT, [told(0), told(1, { happenings: rejectedAt(1) })]);
  expect([calm?.isNews, cut?.isNews]).toEqual([false, true]);
  const message: unknown = (await heard).at(1);
  expect(message instanceof Buffer && readNews(message)).toEqual({ name: LIMIT, terms: cut?.terms, now: cut?.now });
});

test('what is no news is not taken for it', () => {
  expect(readNews(Buffer.alloc(0))).toBeUndefined();
  expect(readNews(Buffer.from('anything that somebody may publish there'))).toBeUndefined();
  expect(readNews(Buffer.alloc(130, 255))).toBeUndefined();
});

test('in a cluster they find all of a limit on one node', async () => {
  const cluster = (await startCluster()).client();
  const { lease } = readScripts();
  const keys = ['{x}1', '{x}2', '{x}3', '{x}4', '{x}5'];
  const args = [packCall({ ...CALL, happenings: rejectedAt(0) }), 'a', packSettings(SETTINGS), NEWS, 'x', 'c'];
  const answer: unknown = await cluster.call('EVAL', lease, 5, ...keys, ...args);
  expect(typeof answer).toBe('string');
});
