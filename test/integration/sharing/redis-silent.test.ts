/** A Redis that has stopped responding on an open connection gets few requests, so that none pile up in this process. */
import { expect, test } from 'vitest';
import { eventually } from '../../support/proxy/tidegate.ts';
import { connectKeys } from '../../support/redis/stored-keys.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { testConnection } from '../../support/redis/test-connection.ts';
import type { RedisResult } from '../../../src/sharing/redis/redis-requests.ts';

test('of 300 requests to a stopped Redis, few are sent, and the others fail as unsent', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const redis = await startRedis();
  const client = await connectKeys(redis);
  const { connection } = testConnection(client, { channel: 'keys', timeout: 500 });
  let sent = 0;
  const ping = (isProbe = false): Promise<RedisResult<string>> =>
    new Promise((onDone) => {
      const run = (): Promise<string> => {
        sent += 1;
        return client.ping();
      };
      connection.requests.send({ isProbe, run, onDone });
    });
  expect(await ping()).toEqual({ kind: 'response', response: 'PONG' });

  redis.freeze();
  expect(await ping()).toEqual({ kind: 'lost', isUnsent: false });
  sent = 0;
  const results = await Promise.all(Array.from({ length: 300 }, () => ping()));
  stalls.unlessStalled(() => expect(sent).toBeLessThanOrEqual(1)); // all at once: within one interval
  expect(results.filter((result) => result.kind === 'lost' && result.isUnsent)).toHaveLength(300 - sent);
  expect(await ping(true)).toEqual({ kind: 'lost', isUnsent: false });

  redis.thaw();
  await eventually(
    () => ping(true),
    ({ kind }) => kind === 'response',
  );
  expect(await ping()).toEqual({ kind: 'response', response: 'PONG' });
});
