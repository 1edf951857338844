import {
  MAX_PER_WRITE,
  MAX_RESPONSES,
  MAX_STORED_BYTES,
  type ResponseBounds,
  type ResponseStore,
  usedOfBounds,
  writeOfResponse,
} from '../../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../../core/overload/resource-bound.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { RedisKeyConnection } from './redis-key-commands.ts';

/** The layout of what is stored. */
const LAYOUT = 'r2';
/** What Redis needs for a response besides its bytes, about: its name, its number and its entry of the write. */
const ENTRY_BYTES = 1536;

/**
 * KEYS: the response; all responses by the number of their arrival; counters; the responses of the write, each with its number. ARGV:
 * the bytes, the lifetime, the id, the prefixes of the names of responses and of writes, the bytes and the number of all that may be
 * kept, the bytes of an entry, the number of responses of the write. Evicts the oldest beyond that. A response that has expired or was
 * replaced stays counted until it is the oldest.
 */
const KEEP = `
local bytes = tonumber(redis.call('HGET', KEYS[3], 'bytes') or '0')
if redis.call('HLEN', KEYS[4]) < tonumber(ARGV[9]) or redis.call('HEXISTS', KEYS[4], ARGV[3]) == 1 then
  local size = #ARGV[1] + tonumber(ARGV[8])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  local number = redis.call('HINCRBY', KEYS[3], 'number', 1)
  redis.call('ZADD', KEYS[2], number, ARGV[3] .. ' ' .. number .. ' ' .. size)
  redis.call('HSET', KEYS[4], ARGV[3], number)
  bytes = redis.call('HINCRBY', KEYS[3], 'bytes', size)
end
local evicted = 0
for _ = 1, 100 do -- a step is short; the next response removes what is left
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then break end
  local id, its, length = string.match(oldest, '^(%S+) (%S+) (%S+)$')
  local name, write = ARGV[4] .. id, ARGV[5] .. string.match(id, '^[^.]+')
  local isLatest = redis.call('HGET', write, id) == its
  local isKept = isLatest and redis.call('EXISTS', name) == 1
  if isKept and bytes <= tonumber(ARGV[6]) and redis.call('ZCARD', KEYS[2]) <= tonumber(ARGV[7]) then break end
  redis.call('ZREM', KEYS[2], oldest)
  if isLatest then redis.call('HDEL', write, id) end
  if isKept then
    redis.call('DEL', name)
    evicted = evicted + 1
  end
  bytes = redis.call('HINCRBY', KEYS[3], 'bytes', -tonumber(length))
end
for i = 2, 4 do
  redis.call('PEXPIRE', KEYS[i], math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[i])))
end
return {tostring(bytes), tostring(redis.call('ZCARD', KEYS[2])), tostring(evicted)}
`;

/** KEYS: the response. Returns it, and the rest of its lifetime. */
const READ = `return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}`;
const READ_COMMAND = 'tidegateReadResponse';

/** KEYS: the responses of a write, which are at most `MAX_PER_WRITE`. ARGV: the prefix of the names of responses. */
const REMOVE = `
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do redis.call('DEL', ARGV[1] .. id) end
redis.call('DEL', KEYS[1])
`;

export interface RedisResponseStoreParts extends Partial<ResponseBounds> {
  readonly connection: RedisKeyConnection;
  readonly prefix: string;
}

/** Kept responses in Redis, for all replicas. New ones evict the oldest. */
export class RedisResponseStore implements ResponseStore {
  readonly #parts: RedisResponseStoreParts;
  readonly #max: ResponseBounds;
  /** All of them are in one slot of a cluster, because one script evicts them. */
  readonly #base: string;
  #used = 0;
  #evicted = 0;

  constructor(parts: RedisResponseStoreParts) {
    this.#parts = parts;
    this.#max = { maxCount: parts.maxCount ?? MAX_RESPONSES, maxBytes: parts.maxBytes ?? MAX_STORED_BYTES };
    this.#base = `${parts.prefix}:{responses}:${LAYOUT}`;
    const { client } = parts.connection;
    client.defineCommand('tidegateKeepResponse', { numberOfKeys: 4, lua: KEEP });
    client.defineCommand(READ_COMMAND, { numberOfKeys: 1, lua: READ });
    client.defineCommand('tidegateRemoveResponses', { numberOfKeys: 1, lua: REMOVE });
  }

  get bounds(): readonly ResourceBound[] {
    return [{ name: 'kept_responses', used: this.#used, reached: this.#evicted }];
  }

  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void {
    this.#run(
      () => this.#call(`${READ_COMMAND}Buffer`, [this.#nameOf(id)]),
      (reply) => {
        const [bytes, left] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
        onRead(bytes instanceof Buffer ? bytes : undefined, Number(left ?? 0));
      },
    );
  }

  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void {
    const keys = [
      this.#nameOf(id),
      `${this.#base}:order`,
      `${this.#base}:counters`,
      this.#writeOf(writeOfResponse(id)),
    ];
    const { maxCount, maxBytes } = this.#max;
    const args = [
      ...[bytes, String(Math.ceil(lifetime)), id, this.#nameOf(''), this.#writeOf('')],
      ...[maxBytes, maxCount, ENTRY_BYTES, MAX_PER_WRITE].map(String),
    ];
    this.#run(
      () => this.#call('tidegateKeepResponse', [...keys, ...args]),
      (reply) => {
        if (Array.isArray(reply)) {
          const [keptBytes, count, evicted] = reply.map(Number);
          this.#used = usedOfBounds(this.#max, count ?? 0, keptBytes ?? 0);
          this.#evicted += evicted ?? 0;
        }
        onKept();
      },
    );
  }

  remove(write: string): void {
    this.#run(
      () => this.#call('tidegateRemoveResponses', [this.#writeOf(write), this.#nameOf('')]),
      () => undefined,
    );
  }

  #nameOf(id: string): string {
    return `${this.#base}:of:${id}`;
  }

  #writeOf(write: string): string {
    return `${this.#base}:write:${write}`;
  }

  async #call(name: string, args: readonly (string | Buffer)[]): Promise<unknown> {
    const { client } = this.#parts.connection;
    const command: unknown = Reflect.get(client, name);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${name}`);
    const reply: unknown = await Reflect.apply(command, client, args);
    return reply;
  }

  /** Calls back once; undefined after an error, or if Redis does not respond in time. */
  #run<T>(run: () => Promise<T>, onReply: (reply: T | undefined) => void): void {
    this.#parts.connection.requests.send({
      op: 'key',
      run,
      onDone: (result) => onReply(result.kind === 'response' ? result.response : undefined),
    });
  }
}
