import type { Clock, Millis } from '../../../core/scalars.ts';
import type { RedisClient } from '../redis-connection.ts';
import type { RedisRequest, RedisRequests } from '../redis-requests.ts';
import { COUNT_NAMES, READ_NAME, READ_NAMES, RENEW_LEASES, SWAP_NAME } from './key-scripts.ts';
import { RedisKeyCounts } from './redis-key-counts.ts';
import { KeyStoreTime } from './key-store-time.ts';
import { scriptKeys, type UsedClients } from './redis-key-names.ts';

export interface RedisKeyConnection {
  readonly client: RedisClient;
  readonly requests: RedisRequests;
  /** Whether the connection is ready, and uses the right database. */
  readonly isConnected: () => boolean;
  /** The channel of announcements. */
  readonly channel: string;
  readonly onProblem: (error: unknown) => void;
  /** Why Redis does not respond, without secrets. */
  readonly problem: () => string;
}

export interface RedisKeyCommandsParts extends RedisKeyConnection {
  readonly prefix: string;
  /** The maximum time for a response. */
  readonly timeout: Millis;
  readonly clock: Clock;
  /** The maximum of answered keys of an upstream; see `RedisKeyCounts`. */
  readonly maxKeys: number;
}

const SCRIPTS = {
  tidegateReadName: READ_NAME,
  tidegateSwapName: SWAP_NAME,
  tidegateReadNames: READ_NAMES,
  tidegateRenewLeases: RENEW_LEASES,
  tidegateCountNames: COUNT_NAMES,
};
const RENEW: keyof typeof SCRIPTS = 'tidegateRenewLeases';
/** Strings of a reply for each name. */
export const REPLY_PARTS = 5;

/** What Redis has counted. */
export interface CountedNames {
  readonly hasUnresolved: boolean;
  /** More names may have expired than one step removes. */
  readonly hasMoreExpired: boolean;
}

/** `unsent`: Redis has not received the command. */
export type Lost = 'unsent' | 'unknown';

/** The commands about keys of writes, each with a bounded time for its response. */
export class RedisKeyCommands {
  readonly counts: RedisKeyCounts;
  readonly #parts: RedisKeyCommandsParts;
  /** The time of each upstream; each response corrects it. */
  readonly #times = new Map<string, KeyStoreTime>();

  constructor(parts: RedisKeyCommandsParts) {
    this.#parts = parts;
    this.counts = new RedisKeyCounts(parts.maxKeys);
    for (const [name, lua] of Object.entries(SCRIPTS)) parts.client.defineCommand(name, { lua });
  }

  timeOf(upstream: string): KeyStoreTime {
    const known = this.#times.get(upstream);
    if (known !== undefined) return known;
    const time = new KeyStoreTime();
    this.#times.set(upstream, time);
    return time;
  }

  /** Runs a script about names of an upstream. Calls back once, after it has returned. */
  run(
    script: keyof typeof SCRIPTS,
    upstream: string,
    names: readonly string[],
    args: readonly string[],
    onReply: (reply: readonly string[] | Lost) => void,
    clients?: UsedClients,
  ): void {
    const { client, clock, prefix, timeout } = this.#parts;
    const command: unknown = Reflect.get(client, script);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${script}`);
    const sentAt = clock.now();
    const time = this.timeOf(upstream);
    const keys = scriptKeys(prefix, upstream, names, clients);
    const all = [keys.length, ...keys, ...args, String(time.least(sentAt))];
    this.#send(
      {
        run: async () => toReply(await Reflect.apply(command, client, all)),
        onReceived: (reply) => time.addSample(sentAt, clock.now(), Number(reply[REPLY_PARTS - 1]), timeout),
        isProbe: script === RENEW, // one at a time
      },
      // Without the time of Redis, those in a state mean nothing here: a key would seem valid for ever.
      (reply) => onReply(time.isKnown || reply === 'unsent' ? reply : 'unknown'),
    );
  }

  /**
   * Counts the names of an upstream, and removes some of those that have expired. Calls back once; undefined if Redis has not
   * responded.
   */
  count(upstream: string, onCounted: (counted: CountedNames | undefined) => void): void {
    const onReply = (reply: readonly string[] | Lost): void => {
      const [counts, more] = typeof reply === 'string' ? [] : reply;
      if (counts === undefined) return onCounted(undefined);
      this.counts.onReply(upstream, counts);
      onCounted({ hasUnresolved: !counts.startsWith('0 '), hasMoreExpired: more === '1' });
    };
    this.run('tidegateCountNames', upstream, [], [], onReply, 'all');
  }

  /** Sends a command that changes nothing. Calls back once, after it has returned. */
  ask<T>(run: () => Promise<T>, onReply: (reply: T | Lost) => void): void {
    this.#send({ run }, onReply);
  }

  #send<T>(request: Pick<RedisRequest<T>, 'run' | 'onReceived' | 'isProbe'>, onReply: (reply: T | Lost) => void): void {
    this.#parts.requests.send({
      ...request,
      op: 'key',
      onDone: (result) =>
        onReply(result.kind === 'response' ? result.response : result.isUnsent ? 'unsent' : 'unknown'),
    });
  }
}

function toReply(reply: unknown): readonly string[] {
  if (Array.isArray(reply) && reply.every((part) => typeof part === 'string')) return reply;
  throw new TypeError('a script returned something other than strings');
}
