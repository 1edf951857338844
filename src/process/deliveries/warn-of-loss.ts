import type { Logger } from 'pino';
import type { Millis } from '../../core/scalars.ts';
import type { RedisKeyConnection } from '../../sharing/redis/keys/redis-key-commands.ts';

/** The start does not wait for it. */
const TIMEOUT: Millis = 5000;

/** Logs a warning if the settings of Redis can lose deliveries. Logs nothing if it does not respond, or does not permit INFO. */
export function warnOfLoss(
  { client, requests }: Pick<RedisKeyConnection, 'client' | 'requests'>,
  logger: Logger,
): void {
  const read = async (): Promise<string> => `${await client.info('memory')}\n${await client.info('persistence')}`;
  requests.send({
    ...{ run: read, timeout: TIMEOUT },
    onDone: (result) => {
      if (result.kind === 'lost') return;
      const field = (name: string): string | undefined =>
        new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(result.response)?.[1];
      const policy = field('maxmemory_policy');
      if (field('maxmemory') !== '0' && policy !== undefined && policy !== 'noeviction') {
        logger.warn({ policy }, 'Redis can remove deliveries when its memory is full: set maxmemory-policy noeviction');
      }
      if (field('aof_enabled') === '0') {
        logger.warn('Redis loses deliveries when it restarts: set appendonly yes');
      }
    },
  });
}
