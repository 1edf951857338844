import { createHash } from 'node:crypto';
import type { SharedKeyCounts } from '../../core/events/store-events.ts';
import type { KeyInspection } from '../../core/idempotency/key-inspection.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { WriteDigests } from '../../http/idempotency/write-digests.ts';
import type { WriteKeys } from '../../http/request/exchange-context.ts';
import { cancellableTimer, createKeyStore } from '../../http/idempotency/create-key-store.ts';
import { FallbackKeyStore } from '../../sharing/keys/fallback-key-store.ts';
import { KeyClient } from '../../sharing/keys/key-client.ts';
import { SharedKeys } from '../../sharing/keys/shared-keys.ts';
import { KeptResponses } from '../../http/idempotency/kept-responses.ts';
import { sealResponses } from '../../store/responses/sealed-response-store.ts';
import { KeyRecount } from '../../sharing/redis/keys/key-recount.ts';
import { RedisKeyBackend } from '../../sharing/redis/keys/redis-key-backend.ts';
import { RedisKeyCommands, type RedisKeyConnection } from '../../sharing/redis/keys/redis-key-commands.ts';
import { RedisKeyInspection } from '../../sharing/redis/keys/redis-key-inspection.ts';
import { parseAnnouncement } from '../../sharing/redis/keys/redis-key-names.ts';
import { backgroundTimer } from './background-timer.ts';
import { RedisResponseStore } from '../../sharing/redis/keys/redis-response-store.ts';

export interface RedisKeysParts {
  readonly connection: RedisKeyConnection;
  readonly prefix: string;
  readonly timeout: Millis;
  /** The name of this process, never used by another one. */
  readonly owner: string;
  /** With which kept responses are encrypted; undefined: none is kept. */
  readonly sealSecret: string | undefined;
  /** The maximum of kept responses, of all replicas. */
  readonly maxResponses: number;
  /** The maximum of answered keys of an upstream, of all replicas. */
  readonly maxKeys: number;
  readonly clock: Clock;
  /** In the configuration. */
  readonly upstreams: () => readonly string[];
  /** A write with `onStoreLost: local` is decided by what this process knows. */
  readonly onDecidedLocally: (upstream: string) => void;
}

/** How long the end of this process waits for its last changes to be stored. */
const STORED_WITHIN: Millis = 1000;

/** The keys of writes, which replicas share over Redis. */
export class RedisKeys {
  readonly writeKeys: WriteKeys;
  readonly inspection: KeyInspection;
  readonly #shared: SharedKeys;
  readonly #client: KeyClient;
  readonly #commands: RedisKeyCommands;
  readonly #recount: KeyRecount;
  #isClosed = false;

  constructor({ connection, sealSecret, maxResponses, ...parts }: RedisKeysParts) {
    const { clock, owner } = parts;
    const commands = new RedisKeyCommands({ ...connection, ...parts });
    this.#commands = commands;
    const ahead = (upstream: string): Millis => commands.timeOf(upstream).offset;
    const backend = new RedisKeyBackend({ ...connection, ...parts, commands, ahead });
    this.#recount = new KeyRecount({ ...connection, commands, schedule: backgroundTimer });
    this.#shared = new SharedKeys({
      backend,
      clock,
      owner,
      // A change that Redis cannot store is tried again, until the end of this process.
      schedule: (delay, run) => (this.#isClosed ? () => undefined : cancellableTimer(delay, run)),
      reply: (reply) => this.#client.onReply(reply),
      onForgotten: (name) => keys.forget(name),
    });
    this.#client = new KeyClient({
      clock,
      send: (operations) => this.#shared.perform(operations),
      schedule: setImmediate,
      after: cancellableTimer,
      isLeaseValid: (name) => this.#shared.isLeaseValid(name),
      bounds: () => [this.#shared.bound, ...commands.counts.bounds],
    });
    const keys = new FallbackKeyStore(this.#client, createKeyStore(clock), parts.onDecidedLocally);
    const digests = new WriteDigests(digestSecretOf(parts.prefix));
    const responses = new RedisResponseStore({ connection, ...parts, maxCount: maxResponses });
    this.writeKeys = { keys, digests, responses: new KeptResponses(sealResponses(responses, sealSecret)) };
    let forgotten = 0;
    this.inspection = new RedisKeyInspection({
      ...{ ...parts, connection, commands, responses },
      digestKey: (key) => digests.digestKey(key),
      nextVersion: () => `${owner}.operator.${(forgotten += 1)}`,
    });
  }

  onNews(message: string): void {
    const name = parseAnnouncement(message);
    if (name !== undefined) this.#shared.onNews(name.upstream, name.name);
  }

  /** The keys in Redis, as far as this process knows. */
  get counts(): readonly SharedKeyCounts[] {
    return this.#commands.counts.all;
  }

  /** Resolves once the ends of all requests are stored, or after a second. */
  async close(): Promise<void> {
    this.#recount.close();
    this.#client.flush();
    await new Promise<void>((resolve) => {
      const cancel = cancellableTimer(STORED_WITHIN, resolve);
      this.#shared.whenIdle(() => {
        cancel();
        resolve();
      });
    });
    this.#isClosed = true;
    this.#shared.close();
  }
}

/**
 * The secret of the digests that name writes. Whoever can read Redis can test a guess, with a secret that is stored beside them too.
 * So it is what replicas have in common and never change: with another one, a repeat of a write would be a new write.
 */
function digestSecretOf(prefix: string): Buffer {
  return createHash('sha256').update(`keys of writes\0${prefix}`).digest();
}
