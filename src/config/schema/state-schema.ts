import { z } from 'zod';
import { RedisUrl } from '../values/redis-url.ts';
import { UpstreamTlsSchema } from './tls-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

/** No braces: they would set the cluster slot of a key, and the part after the prefix does that. */
const PREFIX_PATTERN = /^[!-z|~]{1,64}$/;

const PrefixSchema = textCodec<string>({
  expected: 'text without spaces and braces, such as tidegate',
  forms: [{ type: 'string', pattern: PREFIX_PATTERN.source }],
  parse(input) {
    if (typeof input === 'string' && PREFIX_PATTERN.test(input)) return { ok: true, value: input };
    const bare = String(input).replace(/[^!-z|~]/g, '');
    const message = 'expected 1 to 64 printable ASCII characters, without spaces and braces';
    return parseFailure(message, PREFIX_PATTERN.test(bare) ? bare : undefined);
  },
  format: (prefix) => prefix,
});

/** Above a quarter of a second, requests would wait noticeably for an unresponsive Redis. */
const TIMEOUT_RANGE_MS = { min: 10, max: 240 } as const;

const Username = z.string().min(1).optional();
const Password = z.string().min(1).optional();

const MemoryStateSchema = z.strictObject({
  store: z.literal('memory').describe('In the memory of this process; replicas do not share limits.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe('A file for the state, written every 10 s and at shutdown, and read at the next start.'),
});

const SqliteStateSchema = z.strictObject({
  store: z
    .literal('sqlite')
    .describe(
      'In a database file of this process and its workers: idempotency keys and learned limits survive its end.',
    ),
  file: z.string().min(1).describe('The database; it is made if there is none. One process uses it at a time.'),
  durability: z
    .enum(['full', 'normal'])
    .prefault('full')
    .describe(
      'full: what is known of a write is on the disk before the write is sent; normal: a loss of power may lose the last seconds, the end of the process loses nothing.',
    ),
});

const RedisStateSchema = z.strictObject({
  store: z.literal('redis').describe('In Redis or Valkey, shared by all replicas with the same prefix.'),
  url: RedisUrl.describe(
    'redis://host:6379/0, rediss:// for TLS; redis+sentinel://host:26379,host:26379/mymaster; redis+cluster://host:6379,host:6379.',
  ),
  prefix: PrefixSchema.prefault('tidegate').describe('Prefix of all keys.'),
  timeout: PositiveDuration.refine(
    (ms) => ms >= TIMEOUT_RANGE_MS.min && ms <= TIMEOUT_RANGE_MS.max,
    `must be from ${TIMEOUT_RANGE_MS.min}ms to ${TIMEOUT_RANGE_MS.max}ms`,
  )
    .prefault('150ms')
    .describe('Maximum time for a response, from 10ms to 240ms; after that this process continues on its own.'),
  maxKeys: z
    .int()
    .min(1)
    .max(100_000_000)
    .prefault(1_000_000)
    .describe(
      'Maximum idempotency keys of answered writes, by upstream; and a fifth as many of unresolved ones. Beyond it, those that would be dropped first are removed.',
    ),
  username: Username.describe('Redis user name, unless the url has one; the default user if absent.'),
  password: Password.describe('Password of that user, without URL encoding.'),
  sentinelUsername: Username.describe('User name for the Sentinels.'),
  sentinelPassword: Password.describe('Password for the Sentinels.'),
  tls: UpstreamTlsSchema.prefault({}).describe(
    'TLS to Redis where the url begins with rediss: how it is verified, and the client certificate.',
  ),
});

export const StateSchema = z.discriminatedUnion('store', [MemoryStateSchema, SqliteStateSchema, RedisStateSchema]);

/** The fields of a Redis store, to parse one by one. */
export const redisStateShape = RedisStateSchema.shape;
