import { limitId } from '../../core/limits/limit-ref.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { LeaseClient } from '../replicas/lease-client.ts';
import { claimRetention } from '../replicas/limit-retention.ts';
import type { LeaseRequest } from '../replicas/replica-protocol.ts';
import { decodeResponse, encodeRequest, encodeSettings } from './lease-codec.ts';
import { CLAIM_LIMIT } from './limit-claim.ts';
import { LIMIT_KEYS, loadLuaScript } from './lua-script.ts';
import type { RedisClient } from './redis-connection.ts';
import type { RedisRequest, RedisRequests } from './redis-requests.ts';

/** The client of one limit, which receives the response. */
export type LeaseCaller = Pick<LeaseClient, 'ref' | 'settings' | 'onResponse' | 'onClaimed' | 'onNoResponse'>;

export interface LimitCallsParts {
  readonly client: RedisClient;
  /** The prefix of all keys. */
  readonly prefix: string;
  readonly requests: RedisRequests;
  readonly clock: Clock;
  /** The channel on which the script publishes changes of limits. */
  readonly broadcastChannel: () => string;
  /** Once it is closed, no response is passed on. */
  readonly isClosed: () => boolean;
}

/** The keys of one limit, and its name in broadcasts. */
interface LimitKeys {
  /** The key of the limit itself: the first of `keys`. */
  readonly limit: string;
  readonly keys: readonly string[];
  readonly name: string;
}

type RunScript = (args: readonly (string | Buffer)[]) => Promise<unknown>;

/** A command to send, and what to do with its response. */
interface LimitCall<T> extends Required<Pick<RedisRequest<T>, 'op' | 'since' | 'run'>> {
  readonly deliver: (response: T, now: Millis) => void;
}

/** Runs the scripts that keep limits in Redis. */
export class LimitCalls {
  readonly layout: string;
  readonly #parts: LimitCallsParts;
  readonly #runLimit: RunScript;
  readonly #runClaim: RunScript;
  readonly #limitKeys = new WeakMap<LeaseCaller, LimitKeys>();
  /** When a claim was made that was refused: the time for its response includes that of the call which follows. */
  readonly #refusedClaims = new WeakMap<LeaseCaller, Millis>();

  constructor(parts: LimitCallsParts) {
    const { source, layout } = loadLuaScript();
    this.#parts = parts;
    this.layout = layout;
    this.#runLimit = defineScript(parts.client, 'tidegateLimit', source, LIMIT_KEYS.length);
    this.#runClaim = defineScript(parts.client, 'tidegateClaim', CLAIM_LIMIT, 1);
  }

  /** Calls `onResponse` or `onNoResponse` of the caller, always after this has returned. */
  lease(caller: LeaseCaller, request: LeaseRequest): void {
    const op = request.want > 0 ? 'lease' : 'report';
    const { keys, name } = this.#keysOf(caller);
    const settings = encodeSettings(caller.settings, caller.ref.key !== ''); // encoded each time: a reload changes them
    const args = [
      ...keys,
      encodeRequest(request),
      request.replicaId,
      settings,
      this.#parts.broadcastChannel(),
      name,
      ...request.waitingGroups,
      ...request.returningGroups,
    ];
    const since = this.#refusedClaims.get(caller) ?? this.#parts.clock.now();
    this.#refusedClaims.delete(caller);
    this.#call(caller, {
      op,
      since,
      run: async () => decodeResponse(bytesOf(await this.#runLimit(args))),
      deliver: (response, now) => caller.onResponse(response, now),
    });
  }

  /** Calls `onClaimed` or `onNoResponse` of the caller, always after this has returned. */
  claim(caller: LeaseCaller): void {
    const since = this.#parts.clock.now();
    const { limit } = this.#keysOf(caller);
    this.#call(caller, {
      op: 'lease',
      since,
      run: async () => {
        const at = await this.#runClaim([limit, `${claimRetention(caller.settings)}`]);
        return at === null ? undefined : Number(bytesOf(at));
      },
      deliver: (claimedAt, now) => {
        if (claimedAt === undefined) this.#refusedClaims.set(caller, since);
        caller.onClaimed(claimedAt, now);
      },
    });
  }

  #call<T>(caller: LeaseCaller, { deliver, ...call }: LimitCall<T>): void {
    this.#parts.requests.send({
      ...call,
      isProbe: true, // each limit probes by itself
      onDone: (result, now) => {
        if (this.#parts.isClosed()) return;
        if (result.kind === 'response') deliver(result.response, now);
        else caller.onNoResponse(now);
      },
    });
  }

  #keysOf(caller: LeaseCaller): LimitKeys {
    const known = this.#limitKeys.get(caller);
    if (known !== undefined) return known;
    const { upstream, nested, scope, key } = caller.ref;
    // Versions with different layouts use different keys: each would discard the other's limit, and lease all of it again.
    const base = `${this.#parts.prefix}:{${upstream}${nested === '' ? '' : `/limits/${nested}`}/${scope}${key === '' ? '' : `/${key}`}}:${this.layout}`;
    const limitKeys: LimitKeys = {
      limit: `${base}:limit`,
      keys: LIMIT_KEYS.map((part) => `${base}:${part}`),
      name: limitId(caller.ref),
    };
    this.#limitKeys.set(caller, limitKeys);
    return limitKeys;
  }
}

/** ioredis loads the script when it first runs, and again when Redis no longer has it. */
function defineScript(client: RedisClient, name: string, lua: string, numberOfKeys: number): RunScript {
  client.defineCommand(name, { numberOfKeys, lua });
  const command: unknown = Reflect.get(client, `${name}Buffer`);
  if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${name}`);
  return async (args) => {
    const reply: unknown = await Reflect.apply(command, client, args);
    return reply;
  };
}

function bytesOf(reply: unknown): Buffer {
  if (!Buffer.isBuffer(reply)) throw new TypeError('a script returned something other than a string');
  return reply;
}
