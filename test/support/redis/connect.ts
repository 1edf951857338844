import type { RedisOptions } from 'ioredis';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';

export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/** A connection that ends with the test. It tries for ever, every 20 ms, unless told otherwise. */
export function connect(options: ClientOptions): Redis {
  const client = new Redis({ retryStrategy: () => 20, maxRetriesPerRequest: null, ...options });
  client.on('error', () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}
