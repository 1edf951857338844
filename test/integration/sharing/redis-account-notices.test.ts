import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { AccountNotice } from '../../../src/core/accounts/account-notice.ts';
import { AccountNoticeChannel } from '../../../src/sharing/redis/account-notice-channel.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

const KEY = 'p:{quarantines}';

interface Replica {
  readonly client: Redis;
  readonly channel: AccountNoticeChannel;
  readonly received: AccountNotice[];
  readonly problems: unknown[];
  isConnected: boolean;
  /** How far its clock is ahead of this test's. */
  ahead: number;
}

async function startReplica({ port }: RedisServer, ahead = 0, subscribes = true): Promise<Replica> {
  const client = new Redis(port, '127.0.0.1');
  const subscriber = new Redis(port, '127.0.0.1');
  const [received, problems]: [AccountNotice[], unknown[]] = [[], []];
  const channel: AccountNoticeChannel = new AccountNoticeChannel(client, {
    prefix: 'p',
    channel: 'p:accounts',
    // Slow, so that no round trip on a busy machine takes more than half a second by it.
    clock: { now: () => performance.now() / 20 + replica.ahead },
    isConnected: () => replica.isConnected,
    onNotice: (notice) => void received.push(notice),
    onProblem: (error) => void problems.push(error),
  });
  const replica: Replica = { client, channel, received, problems, isConnected: true, ahead };
  subscriber.on('message', (_channel: string, message: string) => channel.onMessage(message));
  if (subscribes) await subscriber.subscribe('p:accounts');
  onTestFinished(() => {
    channel.close();
    for (const each of [client, subscriber]) each.disconnect();
  });
  return replica;
}

const QUARANTINE = { interval: 30_000, isCommon: false, fairnessKey: 'f', clients: ['one'] };

/** Times are relative to now, on a clock that is ahead of this test's. */
function noticeOf(account: string, ahead = 0): AccountNotice {
  const now = performance.now() + ahead;
  const times = { since: now - 1000, evidenceSentAt: now - 2000, probeAt: now + 5000, trialAt: now + 5000 };
  return { upstream: 'up', account, credentialTag: 'tag', quarantine: { ...times, ...QUARANTINE } };
}

const inService = (account: string): AccountNotice => ({ upstream: 'up', account, credentialTag: 'tag' });
const names = ({ received }: Replica): readonly string[] => received.map(({ account }) => account);

test('publishes a notice to other replicas, with times on their clocks, and not to itself', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis, 3_600_000)];
  const notice = noticeOf('main');
  one.channel.publish(notice);
  await eventually(
    () => other.received.length,
    (count) => count === 1,
  );
  const [{ quarantine } = inService('none')] = other.received;
  expect(quarantine).toMatchObject(QUARANTINE);
  // The clock of Redis is read twice, each time within a round trip, which is long on a busy machine.
  for (const key of ['since', 'evidenceSentAt', 'probeAt'] as const) {
    const difference = (quarantine?.[key] ?? 0) - 3_600_000 - (notice.quarantine?.[key] ?? 0);
    expect(Math.abs(difference)).toBeLessThan(60_000);
  }
  other.channel.publish(inService('main'));
  await eventually(
    () => one.received,
    ([first]) => first?.quarantine === undefined && first?.account === 'main',
  );
  expect(other.received).toHaveLength(1);
  expect([...one.problems, ...other.problems]).toEqual([]);
});

/** The next reads of Redis' clock take a minute each, by the replica's clock. */
function delayTimeReads(replica: Replica, count: number): void {
  const read = replica.client.time.bind(replica.client);
  let delayed = 0;
  replica.client.time = async () => {
    const time = await read();
    if (delayed < count) replica.ahead += 60_000;
    delayed += 1;
    return time;
  };
}

test('reads the clock of Redis again if that has taken too long to be exact', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  delayTimeReads(other, 2);
  const sent = noticeOf('main');
  one.channel.publish(sent);
  const [received] = await eventually(
    () => other.received,
    ({ length }) => length === 1,
  );
  const difference = (received?.quarantine?.since ?? 0) - other.ahead - (sent.quarantine?.since ?? 0);
  expect(Math.abs(difference)).toBeLessThan(25_000);
  expect(other.problems).toEqual([]);
});

test('reports a clock of Redis that always takes too long to read, and applies no notice by it', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  delayTimeReads(other, 3);
  one.channel.publish(noticeOf('main'));
  const problems = await eventually(
    () => other.problems,
    ({ length }) => length === 1,
  );
  expect(problems).toEqual([new Error('no response to TIME within 500 ms, in 3 attempts')]);
  expect(other.received).toEqual([]);
  one.channel.publish(noticeOf('spare'));
  await eventually(
    () => names(other),
    (all) => all.includes('spare'),
  );
});

test('stores the last notice of each account in quarantine for replicas that start later', async () => {
  const redis = await startRedis();
  const one = await startReplica(redis);
  for (const account of ['main', 'spare']) one.channel.publish(noticeOf(account));
  const client = redis.client();
  await eventually(
    () => client.hlen(KEY),
    (count) => count === 2,
  );
  expect(await client.pttl(KEY)).toBeGreaterThan(0);
  one.channel.publish(inService('spare'));
  await eventually(
    () => client.hlen(KEY),
    (count) => count === 1,
  );
  const late = await startReplica(redis);
  await late.channel.load();
  expect(names(late)).toEqual(['main']);
  expect(late.received[0]?.quarantine?.clients).toEqual(['one']);
});

test('keeps the notice of a new credential when the account is in service with the old one', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  one.channel.publish({ ...noticeOf('main'), credentialTag: 'new' });
  one.channel.publish(inService('main'));
  await eventually(
    () => other.received.length,
    (count) => count === 2,
  );
  const late = await startReplica(redis);
  await late.channel.load();
  expect(late.received.map(({ credentialTag }) => credentialTag)).toEqual(['new']);
});

test('publishes the latest notice once Redis is connected again', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  one.isConnected = false;
  one.channel.publish(noticeOf('main'));
  one.channel.publish(inService('main'));
  one.isConnected = true;
  await one.channel.load();
  await eventually(
    () => other.received.length,
    (count) => count > 0,
  );
  expect(other.received).toEqual([{ ...inService('main'), acceptedSentAt: undefined, quarantine: undefined }]);
});

test('publishes again what Redis has not accepted', async () => {
  const redis = await startRedis();
  const [one, other] = [await startReplica(redis), await startReplica(redis)];
  const client = redis.client();
  await client.set(KEY, 'of another type');
  one.channel.publish(noticeOf('main'));
  await eventually(
    () => one.problems.length,
    (count) => count > 0,
  );
  await client.del(KEY);
  await eventually(
    () => client.hlen(KEY),
    (count) => count === 1,
  );
  expect(names(other)).toContain('main'); // it was published although it could not be stored
});

test('stores notices for others if Redis forbids it to publish them', async () => {
  const redis = await startRedis();
  const client = redis.client();
  await client.acl('SETUSER', 'default', 'resetchannels');
  const one = await startReplica(redis, 0, false);
  one.channel.publish(noticeOf('main'));
  await eventually(
    () => client.hlen(KEY),
    (count) => count === 1,
  );
  await one.channel.load();
  expect(one.problems).toEqual([]);
});

test('ignores other messages', async () => {
  const redis = await startRedis();
  const replica = await startReplica(redis);
  const client = redis.client();
  await client.publish('p:accounts', '{"version":1}\n\nnull');
  expect(() => replica.channel.onMessage('\n'.repeat(1_000_000))).not.toThrow();
  await client.hset(KEY, 'up\0main', 'text');
  await replica.channel.load();
  const other = await startReplica(redis);
  other.channel.publish(noticeOf('main'));
  await eventually(
    () => replica.received.length,
    (count) => count === 1,
  );
  expect(replica.problems).toEqual([]);
});
