import type { RedisOptions } from 'ioredis';
import { Redis } from 'ioredis';
import { atEnd } from '../at-end.ts';

export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/** Opens a connection, closed when the test ends. By default it reconnects every 20 ms without limit. */
export function connect(options: ClientOptions): Redis {
  const client = new Redis({ retryStrategy: () => 20, maxRetriesPerRequest: null, ...options });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  return client;
}
