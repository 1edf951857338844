/** Many concurrent clients, each of which sends a request, waits for the response and repeats; with every result. */
import { createHash } from 'node:crypto';
import { Pool } from 'undici';
import type { Millis } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { requestHttp2 } from './request-http2.ts';
import { SharedSessions } from './shared-sessions.ts';

export interface LoadClientResult {
  readonly id: string;
  readonly kind: LoadRequestKind;
  /** When it was sent and answered, on the clock of `performance.now`. */
  readonly sentAt: Millis;
  readonly answeredAt: Millis;
  /** 0: no response head arrived. */
  readonly status: number;
  /** The head arrived, but the body broke off. */
  readonly cut: boolean;
  /** The response belongs to another request. */
  readonly foreign: boolean;
  /** `Tidegate-Outcome: unknown` */
  readonly unknown: boolean;
  /** The reason of a response made by the proxy itself. */
  readonly reason: string | undefined;
}

export type LoadRequestKind = 'get' | 'keyed' | 'unkeyed';

/** Larger than the replay buffer. */
const LARGE = Buffer.alloc(100 * 1024, 'large ');
const SMALL = Buffer.from('amount=100&currency=eur');
const DIGESTS: ReadonlyMap<Buffer, string> = new Map(
  [LARGE, SMALL].map((body) => [body, createHash('sha256').update(body).digest('hex')]),
);

export interface LoadClientsOptions {
  readonly clients: number;
  /** Mean pause between a response and the next request, in ms. */
  readonly thinkTime: Millis;
  readonly seed: number;
  /** Clients use HTTP/2, many on a connection. `ca`: PEM text of the CA. */
  readonly http2?: { readonly ca: string } | undefined;
}

/** Clients over HTTP/2 to a connection. */
const CLIENTS_PER_SESSION = 20;

export class LoadClients {
  readonly results: LoadClientResult[] = [];
  readonly #pool: Pool;
  readonly #sessions: SharedSessions | undefined;
  readonly #options: LoadClientsOptions;
  #sent = 0;
  #running = false;
  #all: Promise<unknown> = Promise.resolve();

  constructor(url: string, options: LoadClientsOptions) {
    this.#options = options;
    this.#sessions = options.http2 === undefined ? undefined : new SharedSessions(url, options.http2.ca);
    // Timeouts are the proxy's task: a response missing after 30 s is lost.
    const timeouts = { headersTimeout: 30_000, bodyTimeout: 30_000 };
    this.#pool = new Pool(url, { connections: options.clients, pipelining: 1, allowH2: false, ...timeouts });
  }

  /** Requests sent so far. */
  get sent(): number {
    return this.#sent;
  }

  start(): void {
    this.#running = true;
    const { clients, seed } = this.#options;
    this.#all = Promise.all(Array.from({ length: clients }, (_, i) => this.#runClient(i, seed + i)));
  }

  /** Stops sending. Resolves when all requests have ended. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#all;
  }

  /** Closes the connections of stopped clients. */
  async close(): Promise<void> {
    this.#sessions?.close();
    await this.#pool.close();
  }

  /** Successes a second in this interval. */
  goodput(from: Millis, to: Millis): number {
    const good = this.results.filter(
      ({ answeredAt, status, cut }) => answeredAt > from && answeredAt <= to && status === 200 && !cut,
    );
    return (1000 * good.length) / (to - from);
  }

  async #runClient(client: number, seed: number): Promise<void> {
    const random = seededRandom(seed);
    await sleep(random() * this.#options.thinkTime);
    while (this.#running) {
      const u = random();
      await this.#sendOne(client, u < 0.4 ? 'get' : u < 0.7 ? 'keyed' : 'unkeyed', random() < 0.2);
      await sleep((0.5 + random()) * this.#options.thinkTime);
    }
  }

  async #sendOne(client: number, kind: LoadRequestKind, large: boolean): Promise<void> {
    this.#sent += 1;
    const id = `${kind}-${this.#sent}`;
    const asked = performance.now();
    const body = large ? LARGE : SMALL;
    const answer =
      kind === 'get'
        ? await this.#request(client, 'GET', `/things?bytes=${large ? 2000 : 200}`, {}, null)
        : await this.#request(client, 'POST', '/charges', headersOf(id, kind, body), body);
    const { body: text, ...received } = answer;
    const foreign = kind !== 'get' && received.status === 200 && !received.cut && !text.startsWith(`${id} `);
    this.results.push({ id, kind, sentAt: asked, answeredAt: performance.now(), foreign, ...received });
  }

  async #request(
    client: number,
    method: 'GET' | 'POST',
    path: string,
    more: Record<string, string>,
    body: Buffer | null,
  ): Promise<Pick<LoadClientResult, 'status' | 'cut' | 'unknown' | 'reason'> & { readonly body: string }> {
    const headers = { ...more, 'x-api-key': `client-${client}` };
    const asked = { method, path, headers, body };
    if (this.#sessions !== undefined) {
      const session = this.#sessions.of(Math.floor(client / CLIENTS_PER_SESSION));
      const { head, whole, body: text } = await requestHttp2(session, asked);
      return { ...parseHead(head), cut: head !== undefined && !whole, body: text };
    }
    let status = 0;
    let unknown = false;
    let reason: string | undefined;
    try {
      const answer = await this.#pool.request(asked);
      ({ status, unknown, reason } = parseHead({ ...answer.headers, ':status': answer.statusCode }));
      return { status, cut: false, unknown, reason, body: await answer.body.text() };
    } catch {
      return { status, cut: status !== 0, unknown, reason, body: '' };
    }
  }
}

function parseHead(
  head: Readonly<Record<string, unknown>> | undefined,
): Pick<LoadClientResult, 'status' | 'unknown' | 'reason'> {
  return {
    status: Number(head?.[':status'] ?? 0),
    unknown: head?.['tidegate-outcome'] === 'unknown',
    reason: /details="(.*)"/.exec(String(head?.['proxy-status']))?.[1],
  };
}

function headersOf(id: string, kind: LoadRequestKind, body: Buffer): Record<string, string> {
  const headers = { 'x-intent': id, 'x-sha256': DIGESTS.get(body) ?? '' };
  return kind === 'keyed' ? { ...headers, 'idempotency-key': id } : headers;
}

function sleep(ms: Millis): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
