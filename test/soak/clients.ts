import { createHash, randomBytes } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { SharedSessions } from '../support/shared-sessions.ts';
import type { Account } from './account.ts';
import { BAD_INPUT } from './bad-input.ts';
import type { Ask, Heard } from './call.ts';
import { call } from './call.ts';
import { callHttp2 } from './call-http2.ts';
import { agentFor } from './reach.ts';
import { sendRaw } from './send-raw.ts';
import { talk } from './talk.ts';

export interface Doors {
  /** Of the proxy. */
  readonly url: string;
  /** PEM text: vouches for it by TLS. */
  readonly ca: string;
  /** The same over a line that carries a few bytes at a time. */
  readonly slow: string;
  /** The same over a line that breaks somewhere. */
  readonly broken: string;
}

const UPLOAD = randomBytes(1024 * 1024);
/** A client that is told to wait for longer comes back all the same: who keeps away is no load. */
const LONGEST_REST: Millis = 1500;

/** How many there are of each kind. */
const CROWD = {
  shop: 90,
  write: 10,
  upload: 4,
  download: 4,
  listen: 6,
  leave: 10,
  crawl: 4,
  stumble: 3,
  err: 2,
  talk: 6,
  share: 30,
} as const;

/** Clients over HTTP/2 to one connection. */
const SHARING = 6;

/** All kinds of clients. Each asks, waits for its answer or does not, rests, and asks again, until they are stopped. */
export class Clients {
  readonly #doors: Doors;
  readonly #account: Account;
  readonly #random: Random;
  #agent: Agent;
  /** Over HTTP/2: for that, clients come by TLS. */
  readonly #sessions: SharedSessions | undefined;
  #running = false;
  #all: Promise<unknown> = Promise.resolve();
  #asked = 0;
  /** The charge of each intent that was answered with one. */
  readonly charges = new Map<string, string>();

  constructor(doors: Doors, account: Account, seed: number) {
    this.#doors = doors;
    this.#agent = agentFor(doors.url, doors.ca);
    if (doors.url.startsWith('https:')) this.#sessions = new SharedSessions(doors.url, doors.ca);
    this.#account = account;
    this.#random = seededRandom(seed);
  }

  start(): void {
    this.#running = true;
    this.#agent = agentFor(this.#doors.url, this.#doors.ca);
    const lives: Promise<void>[] = [];
    for (const [kind, count] of Object.entries(CROWD) as [keyof typeof CROWD, number][]) {
      for (let i = 0; i < count; i += 1) lives.push(this.#live(kind, `${kind}-${i}`));
    }
    this.#all = Promise.all(lives);
  }

  /** Nobody asks any more. Resolves when all have their answers and their connections are closed. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#all;
    this.#agent.destroy();
    this.#sessions?.close();
  }

  async #live(kind: keyof typeof CROWD, name: string): Promise<void> {
    while (this.#running) {
      await sleep(this.#random() * 500);
      await this[kind](name);
    }
  }

  /** Reads and small writes, the half of them with a key, and asks again as it is told to. */
  async shop(name: string): Promise<void> {
    const u = this.#random();
    if (u < 0.3) return void (await this.#ask('/things', { method: 'GET', name }));
    await this.#pay('/charges', name, u < 0.65, 200);
  }

  /** Writes that are too large to be kept for a retry. */
  async write(name: string): Promise<void> {
    await this.#pay('/charges', name, this.#random() < 0.5, 100_000);
  }

  async upload(name: string): Promise<void> {
    const body = UPLOAD.subarray(0, 20_000 + Math.floor(this.#random() * (UPLOAD.length - 20_000)));
    const expecting = this.#random() < 0.3 ? { expect: '100-continue' } : {};
    const chunked = this.#random() < 0.5;
    const heard = await this.#ask(`${this.#feed()}/upload`, { method: 'PUT', name, body, chunked, headers: expecting });
    if (heard.kind !== 'answered' || heard.status !== 200) return;
    const sha = createHash('sha256').update(body).digest('hex');
    if (heard.body.toString() !== sha) this.#fault(`an upload of ${body.length} bytes arrived as another`);
  }

  async download(name: string): Promise<void> {
    const bytes = Math.floor(this.#random() * 1_000_000);
    const reads = this.#random() < 0.5 ? { readsEvery: 20 } : {};
    const heard = await this.#ask(`${this.#feed()}/download`, {
      method: 'GET',
      name,
      query: `?bytes=${bytes}`,
      ...reads,
    });
    if (heard.kind !== 'answered' || heard.status !== 200 || heard.header('x-ends') !== '') return;
    if (heard.body.length !== bytes) {
      this.#fault(`${heard.body.length} bytes of ${bytes} were told as a whole answer`);
    }
  }

  /** Server-sent events, to their end or until it has heard enough. */
  async listen(name: string): Promise<void> {
    const count = Math.floor(5 + this.#random() * 40);
    const feed = this.#feed();
    const query = `?count=${count}`;
    if (this.#random() < 0.5) {
      const leavesAfter = this.#random() * 3000;
      return void (await this.#ask(`${feed}/leave/events`, { method: 'GET', name, query, leavesAfter }));
    }
    const heard = await this.#ask(`${feed}/events`, { method: 'GET', name, query });
    const whole = Array.from({ length: count }, (_, i) => `data: ${i}\n\n`).join('');
    if (heard.kind === 'answered' && heard.status === 200 && heard.body.toString() !== whole) {
      this.#fault('a stream of events was told as whole and is not');
    }
  }

  /** Breaks off at any moment. */
  async leave(name: string): Promise<void> {
    const leavesAfter = this.#random() * this.#random() * 500;
    const feed = this.#feed();
    const u = this.#random();
    if (u < 0.3) return void (await this.#ask('/leave', { method: 'GET', name, leavesAfter }));
    if (u < 0.6) return this.#pay('/v1/charges', name, u < 0.45, u < 0.4 ? 100_000 : 200, leavesAfter);
    if (u < 0.8) {
      return void (await this.#ask(`${feed}/leave/upload`, {
        method: 'PUT',
        name,
        body: UPLOAD,
        chunked: u < 0.7,
        leavesAfter,
      }));
    }
    await this.#ask(`${feed}/leave/download`, { method: 'GET', name, query: '?bytes=900000', leavesAfter });
  }

  /** Sends and reads a few bytes at a time. */
  async crawl(name: string): Promise<void> {
    const body = Buffer.from(`amount=100&currency=eur&metadata[note]=${'slow '.repeat(20)}`);
    const ask = this.#random() < 0.5 ? { method: 'GET' as const } : { method: 'POST' as const, body };
    await this.#ask('/slow', { ...ask, name, door: this.#doors.slow });
  }

  /** Over HTTP/2 where there is TLS, on a connection that others share: whatever others do over HTTP/1.1. */
  async share(name: string): Promise<void> {
    const u = this.#random();
    if (u < 0.6) return this.shop(name);
    if (u < 0.7) return this.write(name);
    if (u < 0.8) return this.upload(name);
    if (u < 0.85) return this.download(name);
    if (u < 0.9) return this.listen(name);
    return this.leave(name);
  }

  /** A WebSocket. */
  async talk(name: string): Promise<void> {
    const path = '/secure/talk';
    this.#account.ask(path);
    const { heard, isSpoiled } = await talk(this.#doors.url, this.#agent, {
      path,
      headers: { 'x-api-key': name },
      random: this.#random,
    });
    this.#account.hear(path, heard);
    if (isSpoiled) this.#fault('a WebSocket said something else than it was told');
  }

  /** Over a line that breaks: what it hears is left to chance. */
  async stumble(name: string): Promise<void> {
    this.#account.ask('/broken');
    const heard = await this.#call('/broken', {
      method: 'POST',
      name,
      body: UPLOAD.subarray(0, 3000),
      door: this.#doors.broken,
    });
    this.#account.hear('/broken', heard.kind === 'answered' ? heard : { kind: 'left' });
  }

  /** What is no request, or one that must not pass. */
  async err(): Promise<void> {
    const bytes = BAD_INPUT[Math.floor(this.#random() * BAD_INPUT.length)] ?? '';
    const answer = await sendRaw(this.#doors, bytes);
    if (answer === undefined) this.#fault(`nobody cared for ${JSON.stringify(bytes.slice(0, 60))}`);
    else if (!/^$|^HTTP\/1\.1 (?:4\d\d |508 |503 .*details="overloaded")/s.test(answer)) {
      this.#fault(`${JSON.stringify(bytes.slice(0, 60))} was answered with ${JSON.stringify(answer.slice(0, 60))}`);
    }
  }

  /** One intent to charge: with a key it is asked for until it is done, without one only while nothing can have happened. */
  async #pay(path: string, name: string, keyed: boolean, bytes: number, leavesAfter?: Millis): Promise<void> {
    const intent = `${name}-${(this.#asked += 1)}`;
    const body = Buffer.from(`amount=100&currency=eur&metadata[intent]=${intent}&metadata[note]=${'x'.repeat(bytes)}`);
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-intent': intent,
      ...(keyed ? { 'idempotency-key': intent } : {}),
    };
    for (let tries = 0; tries < 4 && this.#running; tries += 1) {
      const leaving = leavesAfter === undefined ? {} : { leavesAfter };
      const heard = await this.#ask(path, { method: 'POST', name, headers, body, ...leaving });
      if (heard.kind === 'answered' && heard.status === 200) return this.#note(intent, heard.body.toString());
      if (!keyed && (heard.kind !== 'answered' || heard.header('tidegate-outcome') === 'unknown')) return;
      const wait = heard.kind === 'answered' ? 1000 * Number(heard.header('retry-after')) : 0;
      await sleep(Math.min(LONGEST_REST, wait + 200));
    }
  }

  #feed(): string {
    return this.#random() < 0.5 ? '/feed' : '/secure';
  }

  #note(intent: string, text: string): void {
    const { id, metadata } = JSON.parse(text) as { id: string; metadata: { intent: string } };
    if (metadata.intent !== intent) this.#fault(`${intent} was answered with the charge of ${metadata.intent}`);
    this.charges.set(intent, id);
  }

  async #ask(path: string, request: Request): Promise<Heard> {
    this.#account.ask(path);
    const heard = await this.#call(path, request);
    this.#account.hear(path, heard);
    return heard;
  }

  async #call(path: string, request: Request): Promise<Heard> {
    const { name, query = '', door, ...ask } = request;
    const asked = { ...ask, path: `${path}${query}`, headers: { 'x-api-key': name, ...ask.headers } };
    const sharing = /^share-(\d+)$/.exec(name)?.[1];
    const session = sharing && this.#sessions?.of(Math.floor(Number(sharing) / SHARING));
    if (session) {
      const heard = await callHttp2(session, asked);
      // Overtaken by the end of its connection, and not processed: it may be asked for again (RFC 9113 §8.7).
      const isUnread = heard.kind === 'lost' && heard.why.endsWith('NGHTTP2_REFUSED_STREAM');
      return isUnread ? this.#call(path, request) : heard;
    }
    const { url, ca } = this.#doors;
    return call(door ?? url, { agent: door === undefined ? this.#agent : false, ca }, asked);
  }

  #fault(what: string): void {
    this.#account.faults.push(what);
  }
}

interface Request extends Omit<Ask, 'path'> {
  readonly name: string;
  readonly query?: string;
  readonly door?: string;
}
