import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { SoakCounts } from './soak-counts.ts';
import { BAD_INPUT } from './bad-input.ts';
import type { ProxyUrls } from './soak-caller.ts';
import { SoakCaller } from './soak-caller.ts';
import { sendRaw } from './send-raw.ts';

const UPLOAD = randomBytes(1024 * 1024);
/** The number of clients of each kind. */
const CLIENT_COUNTS = {
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

/** Clients of all kinds. Each sends a request, waits for its response or aborts, pauses, and repeats until stopped. */
export class SoakClients {
  readonly #urls: ProxyUrls;
  readonly #counts: SoakCounts;
  readonly #random: Random;
  readonly #caller: SoakCaller;
  #running = false;
  #all: Promise<unknown> = Promise.resolve();

  constructor(urls: ProxyUrls, counts: SoakCounts, seed: number) {
    this.#urls = urls;
    this.#caller = new SoakCaller(urls, counts);
    this.#counts = counts;
    this.#random = seededRandom(seed);
  }

  start(): void {
    this.#running = true;
    this.#caller.start();
    const lives: Promise<void>[] = [];
    for (const [kind, count] of Object.entries(CLIENT_COUNTS) as [keyof typeof CLIENT_COUNTS, number][]) {
      for (let i = 0; i < count; i += 1) lives.push(this.#runClient(kind, `${kind}-${i}`));
    }
    this.#all = Promise.all(lives);
  }

  /** The charge id that each intent was answered with. */
  get charges(): ReadonlyMap<string, string> {
    return this.#caller.charges;
  }

  /** Stops sending. Resolves when all requests have ended and the connections are closed. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#caller.stop();
    await this.#all;
    this.#caller.close();
  }

  async #runClient(kind: keyof typeof CLIENT_COUNTS, name: string): Promise<void> {
    while (this.#running) {
      await sleep(this.#random() * 500);
      await this[kind](name);
    }
  }

  /** Reads and small writes, half of them with a key; retries after the Retry-After. */
  async shop(name: string): Promise<void> {
    const u = this.#random();
    if (u < 0.3) return void (await this.#caller.request('/things', { method: 'GET', name }));
    await this.#caller.pay('/charges', name, u < 0.65, 200);
  }

  /** Writes too large for the replay buffer. */
  async write(name: string): Promise<void> {
    await this.#caller.pay('/charges', name, this.#random() < 0.5, 100_000);
  }

  async upload(name: string): Promise<void> {
    const body = UPLOAD.subarray(0, 20_000 + Math.floor(this.#random() * (UPLOAD.length - 20_000)));
    const expecting = this.#random() < 0.3 ? { expect: '100-continue' } : {};
    const chunked = this.#random() < 0.5;
    const result = await this.#caller.request(`${this.#feed()}/upload`, {
      method: 'PUT',
      name,
      body,
      chunked,
      headers: expecting,
    });
    if (result.kind !== 'answered' || result.status !== 200) return;
    const sha = createHash('sha256').update(body).digest('hex');
    if (result.body.toString() !== sha) this.#fault(`an upload of ${body.length} bytes arrived altered`);
  }

  async download(name: string): Promise<void> {
    const bytes = Math.floor(this.#random() * 1_000_000);
    const reads = this.#random() < 0.5 ? { readsEvery: 20 } : {};
    const result = await this.#caller.request(`${this.#feed()}/download`, {
      method: 'GET',
      name,
      query: `?bytes=${bytes}`,
      ...reads,
    });
    if (result.kind !== 'answered' || result.status !== 200 || result.header('x-ends') !== '') return;
    if (result.body.length !== bytes) {
      this.#fault(`${result.body.length} of ${bytes} bytes were delivered as a complete response`);
    }
  }

  /** Server-sent events, to their end or until it aborts. */
  async listen(name: string): Promise<void> {
    const count = Math.floor(5 + this.#random() * 40);
    const feed = this.#feed();
    const query = `?count=${count}`;
    if (this.#random() < 0.5) {
      const leavesAfter = this.#random() * 3000;
      return void (await this.#caller.request(`${feed}/leave/events`, { method: 'GET', name, query, leavesAfter }));
    }
    const result = await this.#caller.request(`${feed}/events`, { method: 'GET', name, query });
    const whole = Array.from({ length: count }, (_, i) => `data: ${i}\n\n`).join('');
    if (result.kind === 'answered' && result.status === 200 && result.body.toString() !== whole) {
      this.#fault('an event stream ended as complete, but is not');
    }
  }

  /** Aborts at a random time. */
  async leave(name: string): Promise<void> {
    const leavesAfter = this.#random() * this.#random() * 500;
    const feed = this.#feed();
    const u = this.#random();
    if (u < 0.3) return void (await this.#caller.request('/leave', { method: 'GET', name, leavesAfter }));
    if (u < 0.6) return this.#caller.pay('/v1/charges', name, u < 0.45, u < 0.4 ? 100_000 : 200, leavesAfter);
    if (u < 0.8) {
      return void (await this.#caller.request(`${feed}/leave/upload`, {
        method: 'PUT',
        name,
        body: UPLOAD,
        chunked: u < 0.7,
        leavesAfter,
      }));
    }
    await this.#caller.request(`${feed}/leave/download`, { method: 'GET', name, query: '?bytes=900000', leavesAfter });
  }

  /** Sends and reads a few bytes at a time. */
  async crawl(name: string): Promise<void> {
    const body = Buffer.from(`amount=100&currency=eur&metadata[note]=${'slow '.repeat(20)}`);
    const ask = this.#random() < 0.5 ? { method: 'GET' as const } : { method: 'POST' as const, body };
    await this.#caller.request('/slow', { ...ask, name, proxyUrl: this.#urls.slow });
  }

  /** Does what the other kinds do, over a shared HTTP/2 connection if there is TLS. */
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
    this.#counts.countSent(path);
    const { result, isCorrupted } = await this.#caller.talk(path, name, this.#random);
    this.#counts.countResult(path, result);
    if (isCorrupted) this.#fault('a WebSocket echoed other data than was sent');
  }

  /** Through a relay that breaks connections: any result is possible. */
  async stumble(name: string): Promise<void> {
    this.#counts.countSent('/broken');
    const result = await this.#caller.call('/broken', {
      method: 'POST',
      name,
      body: UPLOAD.subarray(0, 3000),
      proxyUrl: this.#urls.broken,
    });
    this.#counts.countResult('/broken', result.kind === 'answered' ? result : { kind: 'left' });
  }

  /** Sends bytes that are not a request, or a request that must be rejected. */
  async err(): Promise<void> {
    const bytes = BAD_INPUT[Math.floor(this.#random() * BAD_INPUT.length)] ?? '';
    const answer = await sendRaw(this.#urls, bytes);
    if (answer === undefined) this.#fault(`no response to ${JSON.stringify(bytes.slice(0, 60))}`);
    else if (!/^$|^HTTP\/1\.1 (?:4\d\d |508 |503 .*details="overloaded")/s.test(answer)) {
      this.#fault(`${JSON.stringify(bytes.slice(0, 60))} was answered with ${JSON.stringify(answer.slice(0, 60))}`);
    }
  }

  #feed(): string {
    return this.#random() < 0.5 ? '/feed' : '/secure';
  }

  #fault(what: string): void {
    this.#counts.faults.push(what);
  }
}
