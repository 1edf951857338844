import { z } from 'zod';
import { RedisUrl } from '../values/redis-url.ts';
import { UpstreamTls } from './tls-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import { misread, written } from '../values/text-codec.ts';

/** Braces would say which slot of a cluster a key is in, and that is said by what comes after the prefix. */
const PREFIX = /^[!-z|~]{1,64}$/;

const Prefix = written<string>({
  expected: 'text without spaces and braces, such as tidegate',
  forms: [{ type: 'string', pattern: PREFIX.source }],
  read(input) {
    if (typeof input === 'string' && PREFIX.test(input)) return { ok: true, value: input };
    const bare = String(input).replace(/[^!-z|~]/g, '');
    const told = 'expected 1 to 64 letters, digits and signs, without spaces and braces';
    return misread(told, PREFIX.test(bare) ? bare : undefined);
  },
  write: (prefix) => prefix,
});

/** Alone it waits so long for an answer; beyond a quarter of a second a request would feel it. */
const TIMEOUT = { least: 10, most: 240 } as const;

const Username = z.string().min(1).optional();
const Password = z.string().min(1).optional();

const Memory = z.strictObject({
  store: z.literal('memory').describe('In the memory of this process: replicas know nothing of each other.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe('Where it is written down, every 10 s and at the end, for the next process to go on from.'),
});

const Redis = z.strictObject({
  store: z.literal('redis').describe('In Redis or Valkey, for all replicas that use the same prefix there.'),
  url: RedisUrl.describe(
    'redis://host:6379/0, rediss:// for TLS; redis+sentinel://host:26379,host:26379/mymaster; redis+cluster://host:6379,host:6379.',
  ),
  prefix: Prefix.prefault('tidegate').describe('What all keys begin with there.'),
  timeout: PositiveDuration.refine(
    (ms) => ms >= TIMEOUT.least && ms <= TIMEOUT.most,
    `must be from ${TIMEOUT.least}ms to ${TIMEOUT.most}ms`,
  )
    .prefault('150ms')
    .describe('How long an answer may take, from 10ms to 240ms; then this process goes on alone.'),
  username: Username.describe('Whom Redis knows us as, if the url does not say it; its default user if absent.'),
  password: Password.describe('The password of that user, as it is: nothing in it has to be URL-encoded.'),
  sentinelUsername: Username.describe('Whom the Sentinels know us as.'),
  sentinelPassword: Password.describe('The password of that user.'),
  tls: UpstreamTls.prefault({}).describe(
    'How Redis is verified where the url begins with rediss, and how we show who we are.',
  ),
});

export const State = z.discriminatedUnion('store', [Memory, Redis]);

/** The parts of what is written of a Redis store, to look at one by one. */
export const redisShape = Redis.shape;
