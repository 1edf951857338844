import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { SharedStoreOperation, SharedStoreResult } from '../../core/events/store-events.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { RecoverySign } from '../replicas/replica-limit-client.ts';
import type { LeaseRequest, TermsBroadcast } from '../replicas/replica-protocol.ts';
import type { RedisKeyConnection } from './keys/redis-key-commands.ts';
import { createRedisClient, type RedisClient, type RedisLocation } from './redis-connection.ts';
import { RedisSubscriber } from './redis-subscriber.ts';
import { RedisRequests } from './redis-requests.ts';
import { LimitCalls, type LeaseCaller } from './limit-calls.ts';

export interface RedisBackendParts {
  readonly location: RedisLocation;
  /** The prefix of all keys and channels. */
  readonly prefix: string;
  /** The maximum time for a response. */
  readonly timeout: Millis;
  readonly clock: Clock;
  readonly random: Random;
  readonly onRequest: (op: SharedStoreOperation, result: SharedStoreResult, took: Millis) => void;
  /** Another process's report has changed a limit. */
  readonly onBroadcast: (broadcast: TermsBroadcast) => void;
  /** Another process has published a hold. */
  readonly onHold: (hold: ClientHold) => void;
  /** Another process has published a notice of an account. */
  readonly onNotice: (notice: AccountNotice) => void;
  /** Another process has changed what is known of a write. */
  readonly onKeyNews: (message: string) => void;
  /** An access rule of Redis forbids publish/subscribe, with its message; undefined: it works again. */
  readonly onPubSubLost: (cause: string | undefined) => void;
  /** Redis may respond again. */
  readonly onRecoverySign: (sign: RecoverySign) => void;
}

/** The messages of ioredis 6 for a closed connection, which give advice on options of ioredis. */
const IOREDIS_CLOSED = /^(?:Stream isn't writeable|Reached the max retries per request|Connection is closed)/;

/** The position in a script that Redis appends to the cause of an error. */
const SCRIPT_POSITION = /\.? script: [0-9a-f]{40}, on @user_script:\d+\.$/;

/** The backend in Redis: runs the script that keeps a limit, and exchanges broadcasts with the other processes. */
export class RedisBackend {
  readonly #parts: RedisBackendParts;
  readonly #client: RedisClient;
  readonly #subscriberClient: RedisClient;
  readonly #subscriber: RedisSubscriber;
  readonly #requests: RedisRequests;
  readonly #calls: LimitCalls;
  #problem = 'not connected yet';
  #isClosed = false;
  /** The command connection is ready, and uses our database. */
  #isConnected = false;
  #onConnected = (): void => undefined;

  constructor(parts: RedisBackendParts) {
    const { location, random, clock } = parts;
    this.#parts = parts;
    this.#client = createRedisClient(location, random);
    this.#subscriberClient = createRedisClient(location, random);
    this.#requests = new RedisRequests({
      ...{ clock, timeout: parts.timeout, onRequest: parts.onRequest },
      isConnected: () => this.#isConnected && !this.#isClosed,
      onLateResponse: () => this.#onRecoverySign('late'),
      onSilent: () => this.#reconnect(),
      onProblem: (error) => this.#noteProblem(error),
    });
    this.#calls = new LimitCalls({
      ...{ client: this.#client, requests: this.#requests, prefix: parts.prefix, clock },
      broadcastChannel: () => this.#subscriber.broadcastChannel,
      isClosed: () => this.#isClosed,
    });
    this.#subscriber = new RedisSubscriber(this.#client, this.#subscriberClient, {
      ...parts,
      requests: this.#requests,
      db: location.db,
      layout: this.#calls.layout,
      isConnected: () => this.#isConnected,
      onRecoveryAnnounced: () => this.#onRecoverySign('announced'),
      onProblem: (error) => this.#noteProblem(error),
    });
    for (const client of [this.#client, this.#subscriberClient]) {
      client.on('error', (error: Error) => this.#noteProblem(error));
    }
    this.#client.on('ready', () => void this.#onReady());
    this.#client.on('close', () => {
      this.#isConnected = false;
    });
  }

  get connection(): RedisKeyConnection {
    return {
      ...{ client: this.#client, requests: this.#requests },
      ...{ isConnected: () => this.#isConnected && !this.#isClosed, problem: () => this.#problem },
      ...{ channel: this.#subscriber.keyChannel, onProblem: (error) => this.#noteProblem(error) },
    };
  }

  /** The last error, as text for the log. */
  get problem(): string {
    return this.#problem;
  }

  /** Connects, and keeps trying. Resolves once it is connected, or after `within`. */
  async open(within: Millis): Promise<void> {
    for (const client of [this.#client, this.#subscriberClient]) {
      client.connect().catch((error: unknown) => this.#noteProblem(error));
    }
    this.#subscriber.open();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, within);
      this.#onConnected = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#subscriber.close();
    for (const client of [this.#client, this.#subscriberClient]) client.disconnect();
  }

  /** ioredis 6 ignores a refused SELECT at connection, and would write to another database: so it is sent again, and checked. */
  async #onReady(): Promise<void> {
    const { db } = this.#parts.location;
    try {
      if (db !== 0) await this.#client.select(db);
    } catch (error) {
      return this.#noteProblem(error);
    }
    // The reason to log if the connection is lost without an error.
    this.#problem = 'the connection was closed';
    this.#isConnected = true;
    this.#onConnected();
    this.#onRecoverySign('connected');
    await this.#subscriber.loadStored();
  }

  /** Calls `onResponse` or `onNoResponse` of the caller, always after this has returned. */
  lease(caller: LeaseCaller, request: LeaseRequest): void {
    this.#calls.lease(caller, request);
  }

  /** Calls `onClaimed` or `onNoResponse` of the caller, always after this has returned. */
  claim(caller: LeaseCaller): void {
    this.#calls.claim(caller);
  }

  /** Informs the other processes, which may still be in fallback, that Redis answers again. */
  announceRecovery(): void {
    this.#subscriber.announceRecovery();
  }

  /** Publishes a hold to the other processes, if Redis is connected. */
  publishHold(hold: ClientHold): void {
    if (this.#isConnected) this.#subscriber.publishHold(hold);
  }

  /** Publishes a notice of an account to them, once Redis is connected. */
  publishNotice(notice: AccountNotice): void {
    this.#subscriber.publishNotice(notice);
  }

  /** Reads what other processes know of accounts. A connection reads it, too. */
  loadNotices(): void {
    if (this.#isConnected) this.#subscriber.loadNotices();
  }

  #noteProblem(error: unknown): void {
    const { message } = error instanceof Error ? error : new Error(String(error));
    // A closed connection is known already, with its cause.
    if (!IOREDIS_CLOSED.test(message)) this.#problem = message.replace(SCRIPT_POSITION, '');
  }

  #onRecoverySign(sign: RecoverySign): void {
    if (this.#isClosed) return;
    this.#requests.onRecoverySign();
    this.#parts.onRecoverySign(sign);
  }

  #reconnect(): void {
    if (this.#isClosed) return;
    for (const client of [this.#client, this.#subscriberClient]) if (client.status === 'ready') client.disconnect(true);
  }
}
