import type { Millis, Random } from '../../core/scalars.ts';
import type { RedisClient } from '../../sharing/redis/redis-connection.ts';
import { createRedisClient } from '../../sharing/redis/redis-connection.ts';
import type { RedisStateConfig } from '../sharing/redis-location.ts';
import { redisLocation } from '../sharing/redis-location.ts';
import type { ClockSample } from './probe-clock.ts';
import { compareClocks } from './probe-clock.ts';

export type RedisProbe =
  | {
      readonly kind: 'connected';
      readonly clock: ClockSample;
      /** From a command to its response. */
      readonly took: Millis;
      /** By name, of `INFO`; empty if the user may not use it. */
      readonly info: ReadonlyMap<string, string>;
      /** Why this user may not write or run scripts, as Redis says it, such as `NOPERM …` or `READONLY …`; undefined if it may. */
      readonly denied: string | undefined;
      /** Why this user may not publish; undefined if it may, or if `denied` is not undefined. */
      readonly publishDenied: string | undefined;
    }
  /** `message` is that of the system or of Redis. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

/** For the whole probe. Long enough for a machine under load; a store that takes longer is of no use. */
const TIMEOUT: Millis = 5000;
/** Written by the probe, and expired a second later. */
const PROBE_KEY = 'doctor';

/**
 * Connects to Redis as the proxy does, and tries what the proxy needs: to write a key, to run a script, and to publish.
 * Never rejects.
 */
export async function probeRedis(state: RedisStateConfig, random: Random): Promise<RedisProbe> {
  let client: RedisClient;
  try {
    client = createRedisClient(redisLocation(state), random);
  } catch (error) {
    return describe(error);
  }
  const { promise: late, reject }: PromiseWithResolvers<never> = Promise.withResolvers();
  const timer = setTimeout(() => reject(timedOut()), TIMEOUT);
  try {
    return await Promise.race([connectAndExamine(client, state.prefix), late]);
  } catch (error) {
    return describe(error);
  } finally {
    clearTimeout(timer);
    client.disconnect();
  }
}

async function connectAndExamine(client: RedisClient, prefix: string): Promise<RedisProbe> {
  await connect(client);
  return examine(client, prefix);
}

/** Rejects with the first error, because the client itself would try again. */
function connect(client: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error): void => {
      if (error === undefined) resolve();
      else reject(nodeError ?? error);
    };
    // The error of a cluster says only that all nodes failed.
    let nodeError: Error | undefined;
    client.on('node error', (error: Error) => (nodeError = error));
    client.on('error', settle);
    client.once('ready', () => settle());
    client.connect().catch(() => undefined);
  });
}

async function examine(client: RedisClient, prefix: string): Promise<RedisProbe> {
  await client.time(); // the first command may wait for others of the connection
  const sentAt = Date.now();
  const [seconds, micros] = await client.time();
  const receivedAt = Date.now();
  const theirs = 1000 * Number(seconds) + Number(micros) / 1000;
  return {
    kind: 'connected',
    clock: compareClocks(theirs, 1, sentAt, receivedAt),
    took: receivedAt - sentAt,
    info: await readInfo(client),
    ...(await findDenied(client, `${prefix}:${PROBE_KEY}`)),
  };
}

async function readInfo(client: RedisClient): Promise<ReadonlyMap<string, string>> {
  try {
    const text = await client.info();
    return new Map(
      Array.from(text.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm), ([, name = '', value = '']) => [name, value]),
    );
  } catch {
    return new Map();
  }
}

async function findDenied(
  client: RedisClient,
  key: string,
): Promise<Pick<Extract<RedisProbe, { kind: 'connected' }>, 'denied' | 'publishDenied'>> {
  const problemOf = (work: Promise<unknown>): Promise<string | undefined> =>
    work.then(
      () => undefined,
      (error: unknown) => describe(error).message,
    );
  const denied = await problemOf(client.eval("return redis.call('SET', KEYS[1], '', 'PX', 1000)", 1, key));
  return { denied, publishDenied: denied === undefined ? await problemOf(client.publish(key, '')) : undefined };
}

function timedOut(): Error {
  return Object.assign(new Error('no response'), { code: 'ETIMEDOUT' });
}

/** What a cluster of ioredis 6 reports in place of the cause, such as a refused connection. */
const CLOSED = 'Connection is closed.';
/** What ioredis 6 adds about its own next try, which this probe does not wait for. */
const NEXT_TRY = / Retrying from scratch after [\d.]+ms\./;

function describe(error: unknown): Extract<RedisProbe, { kind: 'failed' }> {
  const { message, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  return {
    kind: 'failed',
    code: code ?? '',
    message: message === CLOSED ? 'no node can be reached' : message.replace(NEXT_TRY, ''),
  };
}
