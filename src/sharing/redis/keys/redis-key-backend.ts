import { setImmediate } from 'node:timers';
import type { SharedStoreResult } from '../../../core/events/store-events.ts';
import type { Clock, Millis } from '../../../core/scalars.ts';
import { BackendClock } from '../../replicas/backend-clock.ts';
import type { KeyStateBackend, NameChange, StoredName, SwapResult, WriteName } from '../../keys/key-state-backend.ts';
import { NO_VERSION } from '../../keys/key-state-backend.ts';
import type { RedisClient } from '../redis-connection.ts';
import { COUNT_UNRESOLVED, READ_NAME, RENEW_LEASE, SWAP_NAME } from './key-scripts.ts';
import { decodeNameState, encodeNameState, NAME_STATE_LAYOUT } from './name-state-codec.ts';

export interface RedisKeyConnection {
  readonly client: RedisClient;
  /** Whether the connection is ready, and uses the right database. */
  readonly isConnected: () => boolean;
  /** Of announcements. */
  readonly channel: string;
  readonly onProblem: (error: unknown) => void;
}

export interface RedisKeyBackendParts extends RedisKeyConnection {
  readonly prefix: string;
  /** This process. */
  readonly owner: string;
  /** The maximum time for a response. */
  readonly timeout: Millis;
  readonly clock: Clock;
  readonly onRequest: (result: SharedStoreResult, took: Millis) => void;
}

const SCRIPTS = {
  tidegateReadName: READ_NAME,
  tidegateSwapName: SWAP_NAME,
  tidegateRenewLease: RENEW_LEASE,
  tidegateCountUnresolved: COUNT_UNRESOLVED,
};

/** `unsent`: Redis has not received the command. */
type Lost = 'unsent' | 'unknown';

/** Stores the state of names in Redis. */
export class RedisKeyBackend implements KeyStateBackend {
  readonly leaseTime: Millis = 10_000;
  readonly #parts: RedisKeyBackendParts;
  readonly #redisClock = new BackendClock();

  constructor(parts: RedisKeyBackendParts) {
    this.#parts = parts;
    for (const [name, lua] of Object.entries(SCRIPTS)) parts.client.defineCommand(name, { numberOfKeys: 3, lua });
  }

  read(name: WriteName, awaits: boolean, onRead: (found: StoredName | undefined) => void): void {
    this.#run('tidegateReadName', this.#keysOf(name), [awaits ? '1' : '0'], (reply) =>
      onRead(typeof reply === 'string' ? undefined : this.#toStored(name, reply)),
    );
  }

  swap(name: WriteName, change: NameChange, onSwapped: (result: SwapResult) => void): void {
    const { expected, next, state, owners, isUnresolved, keptFor, isNews } = change;
    // Redis' time is not known before its first answer.
    if (!this.#redisClock.isKnown) {
      return this.read(name, false, (found) => {
        if (found === undefined) onSwapped({ kind: 'lost', isUnsent: true });
        else this.swap(name, change, onSwapped);
      });
    }
    const { owner, channel } = this.#parts;
    const text = state === undefined ? '' : encodeNameState(state, this.#redisClock.offset);
    const args = [
      ...[expected, next, text, [...owners].join(' '), isUnresolved ? '1' : '0', String(Math.ceil(keptFor))],
      ...[owner, String(this.leaseTime), channel, announcementOf(name), isNews ? '1' : '0', toHex(name.name)],
    ];
    this.#run('tidegateSwapName', this.#keysOf(name), args, (reply) => {
      if (typeof reply === 'string') return onSwapped({ kind: 'lost', isUnsent: reply === 'unsent' });
      if (reply[0] === next) return onSwapped({ kind: 'stored' });
      const found = this.#toStored(name, reply);
      onSwapped(found === undefined ? { kind: 'lost', isUnsent: true } : { kind: 'changed', found });
    });
  }

  hasUnresolved(upstream: string, onFound: (isUnresolved: boolean | undefined) => void): void {
    this.#run('tidegateCountUnresolved', this.#keysOf({ upstream, name: '' }), [], (reply) =>
      onFound(typeof reply === 'string' ? undefined : reply[0] !== '0'),
    );
  }

  renew(upstream: string, onRenewed: (isRenewed: boolean) => void): void {
    const args = [this.#parts.owner, String(this.leaseTime)];
    this.#run('tidegateRenewLease', this.#keysOf({ upstream, name: '' }), args, (reply) =>
      onRenewed(typeof reply !== 'string'),
    );
  }

  /** Undefined if what is stored cannot be read. */
  #toStored(name: WriteName, [version = '', text = '', gone = '']: readonly string[]): StoredName | undefined {
    try {
      const state = text === '' ? undefined : decodeNameState(text, name, this.#redisClock.offset);
      return { version: version || NO_VERSION, state, gone: new Set(gone.split(' ')) };
    } catch (error) {
      this.#parts.onProblem(error);
      return undefined;
    }
  }

  /** All of an upstream are in one slot of a cluster. */
  #keysOf({ upstream, name }: WriteName): readonly string[] {
    const base = `${this.#parts.prefix}:{${upstream}/keys}:${NAME_STATE_LAYOUT}`;
    return [`${base}:name:${toHex(name)}`, `${base}:unresolved`, `${base}:leases`];
  }

  /** Calls back once, after it has returned. */
  #run(
    script: keyof typeof SCRIPTS,
    keys: readonly string[],
    args: readonly string[],
    onReply: (reply: readonly string[] | Lost) => void,
  ): void {
    const { client, clock, timeout, onRequest, onProblem, isConnected } = this.#parts;
    const sentAt = clock.now();
    let isOver = false;
    const finish = (result: SharedStoreResult, reply: readonly string[] | Lost): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      onRequest(result, clock.now() - sentAt);
      onReply(reply);
    };
    // After a stall of this process, the response may have arrived unread: setImmediate lets it be read first.
    const timer = setTimeout(() => setImmediate(() => finish('timeout', 'unknown')), timeout).unref();
    if (!isConnected()) {
      setImmediate(() => finish('error', 'unsent'));
      return;
    }
    const command: unknown = Reflect.get(client, script);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${script}`);
    void Promise.resolve(Reflect.apply(command, client, [...keys, ...args]))
      .then(toReply)
      .then(
        (reply) => {
          this.#redisClock.addSample(sentAt, clock.now(), Number(reply[3]));
          finish('ok', reply);
        },
        (error: unknown) => {
          onProblem(error);
          finish('error', 'unknown');
        },
      );
  }
}

/** @returns undefined for a message of another program */
export function parseAnnouncement(message: string): WriteName | undefined {
  const [, name, upstream] = /^([0-9a-f]+) (.+)$/.exec(message) ?? [];
  return name === undefined || upstream === undefined ? undefined : { upstream, name: fromHex(name) };
}

function announcementOf({ upstream, name }: WriteName): string {
  return `${toHex(name)} ${upstream}`;
}

function toReply(reply: unknown): readonly string[] {
  if (Array.isArray(reply) && reply.every((part) => typeof part === 'string')) return reply;
  throw new TypeError('a script returned something other than strings');
}

function toHex(name: string): string {
  return Buffer.from(name, 'latin1').toString('hex');
}

function fromHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}
