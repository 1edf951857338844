import { setImmediate } from 'node:timers';
import type { StoreOp, StoreResult } from '../../core/events/store-events.ts';
import type { Clock, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import { nameOf } from '../protocol/limit-terms.ts';
import type { Hold } from '../workers/worker-protocol.ts';
import type { Borrower } from '../replicas/lease-client.ts';
import type { PoolSign } from '../replicas/replica-limit-client.ts';
import type { Call, News } from '../replicas/replica-protocol.ts';
import { packCall, packSettings, readAnswer, readNews } from './lease-codec.ts';
import type { RedisClient, RedisPlace } from './redis-connection.ts';
import { makeClient } from './redis-connection.ts';
import { Echo, isForbidden } from './pubsub-heartbeat.ts';
import { Holds } from './client-hold-channel.ts';
import { readScripts } from './lua-scripts.ts';

export interface RedisPoolParts {
  readonly place: RedisPlace;
  /** Of all keys and channels. */
  readonly prefix: string;
  /** How long an answer may take. */
  readonly timeout: Millis;
  readonly clock: Clock;
  readonly random: Random;
  readonly onRequest: (op: StoreOp, result: StoreResult, took: Millis) => void;
  /** A limit has changed, as another process has felt. */
  readonly onNews: (news: News) => void;
  /** A client is to wait, as another process was told. */
  readonly onHold: (hold: Hold) => void;
  /** Others cannot be heard or told, for Redis forbids it; undefined: they can. */
  readonly onDeaf: (cause: string | undefined) => void;
  /** It may answer again. */
  readonly onSign: (sign: PoolSign) => void;
}

/** For so long nothing has come though it was asked: the connection may be one to nobody. */
const SILENT_FOR: Millis = 2000;

/** How ioredis 6 says that a connection was closed, with advice on its own options. */
const ABOUT_IOREDIS = /^(?:Stream isn't writeable|Reached the max retries per request|Connection is closed)/;

/** Where in a script it was refused, as Redis says after why. */
const WHERE = /\.? script: [0-9a-f]{40}, on @user_script:\d+\.$/;

/** What is written at each call about one limit. */
interface Address {
  readonly keys: readonly string[];
  readonly name: string;
}

/** Who asks, and is answered. */
export type Caller = Pick<Borrower, 'ref' | 'settings' | 'hear' | 'miss'>;

type Run = (args: readonly (string | Buffer)[]) => Promise<Buffer>;

/** The pool in Redis: asks its scripts, and hears what other processes have felt. */
export class RedisPool {
  readonly #parts: RedisPoolParts;
  readonly #client: RedisClient;
  readonly #ears: RedisClient;
  readonly #lease: Run;
  readonly #report: Run;
  readonly #holds: Holds;
  readonly #echo: Echo;
  readonly #addresses = new WeakMap<Caller, Address>();
  readonly #channel: string;
  readonly #backChannel: string;
  readonly #layout: string;
  #heardAt: Millis;
  #problem = 'it has not been reached yet';
  #isClosed = false;
  /** There is a connection, and it is one to our database. */
  #isThere = false;
  #onThere = (): void => undefined;

  constructor(parts: RedisPoolParts) {
    const { place, random, prefix, clock } = parts;
    this.#parts = parts;
    this.#backChannel = channelOf('back', prefix, place.db);
    this.#heardAt = clock.now();
    this.#client = makeClient(place, random);
    this.#ears = makeClient(place, random);
    const { lease, report, layout } = readScripts();
    this.#layout = layout;
    this.#channel = `${channelOf('news', prefix, place.db)}:${layout}`;
    this.#lease = defineScript(this.#client, 'tidegateLease', lease);
    this.#report = defineScript(this.#client, 'tidegateReport', report);
    const channel = channelOf('holds', prefix, place.db);
    this.#holds = new Holds(this.#client, { ...parts, channel, onProblem: (error) => this.#note(error) });
    this.#echo = new Echo(this.#client, this.#ears, parts);
    for (const client of [this.#client, this.#ears]) client.on('error', (error: Error) => this.#note(error));
    this.#client.on('ready', () => void this.#enter());
    this.#client.on('close', () => {
      this.#isThere = false;
    });
    this.#ears.on('ready', () => void this.#listen());
    this.#ears.on('messageBuffer', (channel: Buffer, message: Buffer) => this.#hear(channel.toString(), message));
  }

  /** What it last said, or was said of it, that is wrong. */
  get problem(): string {
    return this.#problem;
  }

  /** Connects, and goes on trying. Resolves when it is there, or after so long. */
  async open(within: Millis): Promise<void> {
    for (const client of [this.#client, this.#ears]) client.connect().catch((error: unknown) => this.#note(error));
    this.#echo.open();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, within);
      this.#onThere = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#holds.close();
    this.#echo.close();
    for (const client of [this.#client, this.#ears]) client.disconnect();
  }

  /** ioredis 6 asks for a database once, and takes another for it where that is refused: what is meant for one would be in the other. */
  async #enter(): Promise<void> {
    const { db } = this.#parts.place;
    try {
      if (db !== 0) await this.#client.select(db);
    } catch (error) {
      return this.#note(error);
    }
    // If it is lost without a word, that is what there is to say.
    this.#problem = 'the connection was closed';
    this.#isThere = true;
    this.#onThere();
    this.#parts.onSign('connected');
    await this.#learnHolds();
  }

  /** Answers the borrower by its `hear` or `miss`, and not before this has returned. */
  call(borrower: Caller, call: Call): void {
    const { clock, timeout, onRequest } = this.#parts;
    const askedAt = clock.now();
    const op = call.want > 0 || call.clients.length > 0 ? 'lease' : 'report';
    let isOver = false;
    const end = (result: StoreResult, tell: (now: Millis) => void): void => {
      if (isOver || this.#isClosed) return;
      isOver = true;
      clearTimeout(timer);
      const now = clock.now();
      onRequest(op, result, now - askedAt);
      tell(now);
    };
    // After a stall of this process the answer may have come, and not have been read: that is done first.
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (isOver) return;
        this.#noteSilence(timeout);
        end('timeout', (now) => borrower.miss(now));
      });
    }, timeout).unref();
    const fail = (error: unknown): void => {
      this.#note(error);
      end('error', (now) => borrower.miss(now));
    };
    if (!this.#isThere) {
      setImmediate(() => end('error', (now) => borrower.miss(now)));
      return;
    }
    const { keys, name } = this.#addressOf(borrower);
    const settings = packSettings(borrower.settings); // which a reload changes
    const args = [...keys, packCall(call), call.holder, settings, this.#channel, name, ...call.clients];
    // What fails once an answer is read is a fault of ours: it must not pass for one of Redis.
    void (op === 'lease' ? this.#lease : this.#report)(args)
      .then(readAnswer)
      .then((answer) => {
        this.#heardAt = clock.now();
        if (isOver && !this.#isClosed) this.#parts.onSign('late');
        end('ok', (now) => borrower.hear(answer, now));
      }, fail);
  }

  /** Tells the others, who may still be alone, that it answers again. */
  tellBack(): void {
    this.#client.publish(this.#backChannel, '').catch((error: unknown) => this.#note(error));
  }

  /** Tells all the others. */
  hold(hold: Hold): void {
    if (this.#isThere) this.#holds.tell(hold);
  }

  #addressOf(borrower: Caller): Address {
    const known = this.#addresses.get(borrower);
    if (known !== undefined) return known;
    const { upstream, nested, scope, key } = borrower.ref;
    // In another layout it is another limit: each would drop what the other keeps, and lend all of it anew.
    const base = `${this.#parts.prefix}:{${upstream}${nested === '' ? '' : `/limits/${nested}`}/${scope}${key === '' ? '' : `/${key}`}}:${this.#layout}`;
    const address: Address = {
      keys: ['limit', 'accounts', 'heard', 'waiting-0', 'waiting-1'].map((part) => `${base}:${part}`),
      name: nameOf(borrower.ref),
    };
    this.#addresses.set(borrower, address);
    return address;
  }

  async #listen(): Promise<void> {
    try {
      await this.#ears.subscribe(this.#channel, this.#holds.channel, this.#backChannel, this.#echo.channel);
      await this.#learnHolds();
    } catch (error) {
      this.#note(error);
      if (isForbidden(error)) this.#parts.onDeaf(error.message);
    }
  }

  /** Both when we begin to listen and when we can ask: either may be the later. */
  async #learnHolds(): Promise<void> {
    if (!this.#isThere) return;
    try {
      await this.#holds.learn();
    } catch (error) {
      this.#note(error);
    }
  }

  #hear(channel: string, message: Buffer): void {
    if (channel === this.#backChannel) return this.#parts.onSign('told');
    if (channel === this.#echo.channel) return this.#echo.hear();
    if (channel === this.#holds.channel) return this.#holds.hear(message.toString());
    const news = readNews(message);
    if (news !== undefined) this.#parts.onNews(news);
  }

  #note(error: unknown): void {
    const { message } = error instanceof Error ? error : new Error(String(error));
    // That there is no connection is known; why, was said before.
    if (!ABOUT_IOREDIS.test(message)) this.#problem = message.replace(WHERE, '');
  }

  /** What has died without a word is found by making a new connection. */
  #noteSilence(timeout: Millis): void {
    const now = this.#parts.clock.now();
    this.#problem = `no answer within ${timeout} ms`;
    if (this.#isClosed || now - this.#heardAt < SILENT_FOR) return;
    this.#heardAt = now;
    for (const client of [this.#client, this.#ears]) if (client.status === 'ready') client.disconnect(true);
  }
}

/** Keys are of one database, but what is published is heard in all of them. */
function channelOf(name: 'news' | 'back' | 'holds', prefix: string, db: number): string {
  return `${prefix}:${name}${db === 0 ? '' : `:${db}`}`;
}

/** Loaded when first run, and again where Redis has forgotten it. */
function defineScript(client: RedisClient, name: string, lua: string): Run {
  client.defineCommand(name, { numberOfKeys: 5, lua });
  const command: unknown = Reflect.get(client, `${name}Buffer`);
  if (typeof command !== 'function') throw new TypeError(`ioredis has made no command ${name}`);
  return async (args) => {
    const reply: unknown = await Reflect.apply(command, client, args);
    if (!Buffer.isBuffer(reply)) throw new TypeError('a script answered something else than a string');
    return reply;
  };
}
