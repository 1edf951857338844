/** Many clients at once, each of which asks, waits for its answer, and asks again; and what every one was told. */
import { createHash } from 'node:crypto';
import { Pool } from 'undici';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { hearHttp2 } from './hear-http2.ts';
import { SharedSessions } from './shared-sessions.ts';

export interface Told {
  readonly id: string;
  readonly kind: Kind;
  /** When it was asked, and answered, on the clock of `performance.now`. */
  readonly asked: Millis;
  readonly at: Millis;
  /** 0: no head came. */
  readonly status: number;
  /** Its head came, and its end did not. */
  readonly cut: boolean;
  /** It answers somebody else's request. */
  readonly foreign: boolean;
  /** `Tidegate-Outcome: unknown` */
  readonly unknown: boolean;
  /** An answer of the proxy itself: why, in its word. */
  readonly reason: string | undefined;
}

export type Kind = 'get' | 'keyed' | 'unkeyed';

/** Beyond what is kept for a retry. */
const LARGE = Buffer.alloc(100 * 1024, 'large ');
const SMALL = Buffer.from('amount=100&currency=eur');
const DIGESTS: ReadonlyMap<Buffer, string> = new Map(
  [LARGE, SMALL].map((body) => [body, createHash('sha256').update(body).digest('hex')]),
);

export interface CrowdOptions {
  readonly clients: number;
  /** What a client does with itself between an answer and its next request, on average. */
  readonly rest: Millis;
  readonly seed: number;
  /** They come over HTTP/2, many to a connection. `ca`: PEM text that vouches for the URL. */
  readonly http2?: { readonly ca: string } | undefined;
}

/** Clients over HTTP/2 to a connection. */
const SHARING = 20;

export class Crowd {
  readonly told: Told[] = [];
  readonly #pool: Pool;
  readonly #sessions: SharedSessions | undefined;
  readonly #options: CrowdOptions;
  #asked = 0;
  #running = false;
  #all: Promise<unknown> = Promise.resolve();

  constructor(url: string, options: CrowdOptions) {
    this.#options = options;
    this.#sessions = options.http2 === undefined ? undefined : new SharedSessions(url, options.http2.ca);
    // What is slow is the proxy's to judge: no answer after all of its patience is one that was lost.
    const patience = { headersTimeout: 30_000, bodyTimeout: 30_000 };
    this.#pool = new Pool(url, { connections: options.clients, pipelining: 1, allowH2: false, ...patience });
  }

  /** Requests asked so far. */
  get asked(): number {
    return this.#asked;
  }

  start(): void {
    this.#running = true;
    const { clients, seed } = this.#options;
    this.#all = Promise.all(Array.from({ length: clients }, (_, i) => this.#live(i, seed + i)));
  }

  /** Nobody asks any more. Resolves when all are answered. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#all;
  }

  /** Ends the connections of those who have stopped. */
  async leave(): Promise<void> {
    this.#sessions?.close();
    await this.#pool.close();
  }

  /** Successes a second of what was answered in this time. */
  goodput(from: Millis, to: Millis): number {
    const good = this.told.filter(({ at, status, cut }) => at > from && at <= to && status === 200 && !cut);
    return (1000 * good.length) / (to - from);
  }

  async #live(client: number, seed: number): Promise<void> {
    const random = seededRandom(seed);
    await rest(random() * this.#options.rest);
    while (this.#running) {
      const u = random();
      await this.#ask(client, u < 0.4 ? 'get' : u < 0.7 ? 'keyed' : 'unkeyed', random() < 0.2);
      await rest((0.5 + random()) * this.#options.rest);
    }
  }

  async #ask(client: number, kind: Kind, large: boolean): Promise<void> {
    this.#asked += 1;
    const id = `${kind}-${this.#asked}`;
    const asked = performance.now();
    const body = large ? LARGE : SMALL;
    const answer =
      kind === 'get'
        ? await this.#hear(client, 'GET', `/things?bytes=${large ? 2000 : 200}`, {}, null)
        : await this.#hear(client, 'POST', '/charges', headersOf(id, kind, body), body);
    const { body: text, ...told } = answer;
    const foreign = kind !== 'get' && told.status === 200 && !told.cut && !text.startsWith(`${id} `);
    this.told.push({ id, kind, asked, at: performance.now(), foreign, ...told });
  }

  async #hear(
    client: number,
    method: 'GET' | 'POST',
    path: string,
    more: Record<string, string>,
    body: Buffer | null,
  ): Promise<Pick<Told, 'status' | 'cut' | 'unknown' | 'reason'> & { readonly body: string }> {
    const headers = { ...more, 'x-api-key': `client-${client}` };
    const asked = { method, path, headers, body };
    if (this.#sessions !== undefined) {
      const session = this.#sessions.of(Math.floor(client / SHARING));
      const { head, whole, body: text } = await hearHttp2(session, asked);
      return { ...readHead(head), cut: head !== undefined && !whole, body: text };
    }
    let status = 0;
    let unknown = false;
    let reason: string | undefined;
    try {
      const answer = await this.#pool.request(asked);
      ({ status, unknown, reason } = readHead({ ...answer.headers, ':status': answer.statusCode }));
      return { status, cut: false, unknown, reason, body: await answer.body.text() };
    } catch {
      return { status, cut: status !== 0, unknown, reason, body: '' };
    }
  }
}

function readHead(head: Readonly<Record<string, unknown>> | undefined): Pick<Told, 'status' | 'unknown' | 'reason'> {
  return {
    status: Number(head?.[':status'] ?? 0),
    unknown: head?.['tidegate-outcome'] === 'unknown',
    reason: /details="(.*)"/.exec(String(head?.['proxy-status']))?.[1],
  };
}

function headersOf(id: string, kind: Kind, body: Buffer): Record<string, string> {
  const headers = { 'x-intent': id, 'x-sha256': DIGESTS.get(body) ?? '' };
  return kind === 'keyed' ? { ...headers, 'idempotency-key': id } : headers;
}

function rest(ms: Millis): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
