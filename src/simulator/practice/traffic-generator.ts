import { performance } from 'node:perf_hooks';
import { Pool } from 'undici';
import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import { seededRandom } from '../seeded-random.ts';

export interface TrafficOptions {
  /** Origin of the requests, such as `http://127.0.0.1:8080`. */
  readonly target: string;
  readonly clients: readonly TrafficClient[];
  /** Requests that may wait for an answer, over all clients, on as many connections; 256 when absent. */
  readonly maxInFlight?: number;
  /** Timeout of a request in ms; 30 s when absent. */
  readonly timeout?: Millis;
  /** 1 when absent. */
  readonly seed?: number;
}

export interface TrafficClient {
  /** Sent as `x-api-key`. */
  readonly name: string;
  /** Poisson arrivals a second, whether or not earlier requests have been answered. */
  readonly rate: PerSecond;
  /** Whether it honours Retry-After; requests due meanwhile are not sent. False when absent. */
  readonly honoursRetryAfter?: boolean;
  /** The n-th request, from 0; `GET /` when absent. */
  readonly request?: (n: number) => TrafficRequest;
}

export interface TrafficRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Every arrival counts once under the first four; a sent request becomes answered or failed. */
export interface TrafficCounts {
  readonly sent: number;
  /** Not sent, because the client honours a Retry-After. */
  readonly heldBack: number;
  /** Not sent, because too many were in flight. */
  readonly dropped: number;
  readonly answered: Readonly<Record<number, number>>;
  /** No response arrived. */
  readonly failed: number;
}

/** A client whose timer is this late was suspended with the machine: missed arrivals are dropped. */
const MAX_TIMER_LAG: Millis = 1000;
const DEFAULT_REQUEST: TrafficRequest = { method: 'GET', path: '/' };

/** Starts the clients. Equal seeds give equal arrivals. */
export function startTraffic(options: TrafficOptions): TrafficGenerator {
  return new TrafficGenerator(options);
}

/** An open loop of clients: each sends at its own rate until stopped, whatever the target answers. */
export class TrafficGenerator {
  readonly #pool: Pool;
  readonly #maxInFlight: number;
  readonly #senders = new Map<string, TrafficSender>();
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor({ target, clients, maxInFlight = 256, timeout = 30_000, seed = 1 }: TrafficOptions) {
    this.#pool = new Pool(target, {
      connections: maxInFlight,
      allowH2: false,
      headersTimeout: timeout,
      bodyTimeout: timeout,
    });
    this.#maxInFlight = maxInFlight;
    const now = performance.now();
    for (const [i, client] of clients.entries()) {
      const sender = new TrafficSender(client, seededRandom(seed + i * 2 ** 32));
      sender.schedule(now);
      this.#senders.set(client.name, sender);
    }
    this.#arm(now);
  }

  stats(): Readonly<Record<string, TrafficCounts>> {
    return Object.fromEntries([...this.#senders].map(([name, sender]) => [name, sender.counts()]));
  }

  /** @throws RangeError if there is no such client */
  setRate(name: string, rate: PerSecond): void {
    const sender = this.#senders.get(name);
    if (sender === undefined) throw new RangeError(`no client ${name}`);
    const now = performance.now();
    sender.rate = rate;
    sender.schedule(now);
    this.#arm(now);
  }

  /** Stops sending, waits up to `grace` ms for requests in flight, then aborts them. */
  async stop(grace: Millis = 1000): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    const graceTimer = setTimeout(() => void this.#pool.destroy(), grace);
    await Promise.all(this.#running);
    clearTimeout(graceTimer);
    await this.#pool.destroy();
  }

  #arm(now: Millis): void {
    clearTimeout(this.#timer);
    const next = Math.min(...[...this.#senders.values()].map((sender) => sender.nextAt));
    if (this.#stopped || next === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, Math.min(next - now, MAX_TIMER_LAG)));
  }

  #tick(): void {
    const now = performance.now();
    for (const sender of this.#senders.values()) {
      if (now - sender.nextAt > MAX_TIMER_LAG) sender.schedule(now);
      while (sender.nextAt <= now) {
        sender.schedule(sender.nextAt);
        const request = sender.arrive(now, this.#running.size < this.#maxInFlight);
        if (request !== undefined) this.#send(sender, request);
      }
    }
    this.#arm(now);
  }

  #send(sender: TrafficSender, { method, path, headers, body }: TrafficRequest): void {
    const exchange = this.#pool
      .request({ method, path, headers: { ...headers, 'x-api-key': sender.name }, body: body ?? null })
      .then(async (answer) => {
        await answer.body.dump();
        sender.onResponse(answer.statusCode, answer.headers['retry-after'], performance.now());
      })
      .catch(() => sender.onError())
      .finally(() => this.#running.delete(exchange));
    this.#running.add(exchange);
  }
}

/** The sender of one client. */
class TrafficSender {
  readonly name: string;
  rate: PerSecond;
  nextAt: Millis = Number.POSITIVE_INFINITY;
  readonly #random: Random;
  readonly #honoursRetryAfter: boolean;
  readonly #request: (n: number) => TrafficRequest;
  readonly #answered = new Map<number, number>();
  #heldUntil = 0;
  #sent = 0;
  #heldBack = 0;
  #dropped = 0;
  #failed = 0;

  constructor(
    { name, rate, honoursRetryAfter = false, request = () => DEFAULT_REQUEST }: TrafficClient,
    random: Random,
  ) {
    this.#random = random;
    this.name = name;
    this.rate = rate;
    this.#honoursRetryAfter = honoursRetryAfter;
    this.#request = request;
  }

  schedule(from: Millis): void {
    this.nextAt =
      this.rate > 0 ? from + (1000 * Math.log(1 / (1 - this.#random()))) / this.rate : Number.POSITIVE_INFINITY;
  }

  arrive(now: Millis, hasCapacity: boolean): TrafficRequest | undefined {
    if (now < this.#heldUntil) this.#heldBack += 1;
    else if (hasCapacity) return this.#request(this.#sent++);
    else this.#dropped += 1;
    return undefined;
  }

  onResponse(status: number, retryAfter: string | string[] | undefined, now: Millis): void {
    this.#answered.set(status, (this.#answered.get(status) ?? 0) + 1);
    if (!this.#honoursRetryAfter || status < 400 || typeof retryAfter !== 'string') return;
    const seconds = Number(retryAfter);
    const wait = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1000;
    if (wait > 0) this.#heldUntil = Math.max(this.#heldUntil, now + wait);
  }

  onError(): void {
    this.#failed += 1;
  }

  counts(): TrafficCounts {
    return {
      sent: this.#sent,
      heldBack: this.#heldBack,
      dropped: this.#dropped,
      answered: Object.fromEntries(this.#answered),
      failed: this.#failed,
    };
  }
}
