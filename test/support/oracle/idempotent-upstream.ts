/** Endpoints that carry out writes, recognise keys and keep a ledger, each behind an edge with random faults. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { headerOf } from '../clients/send.ts';
import { listen } from '../upstreams/http-upstream.ts';
import type { OracleRequest } from './oracle-request.ts';
import type { Intent } from './intent.ts';
import { EDGE } from './upstream-ledger.ts';
import { EventLoopLag } from './event-loop-lag.ts';
import type { Topology } from './topology.ts';
import { pickOf } from './topology.ts';

interface Entry {
  readonly since: Millis;
  readonly doneAt: Millis;
  readonly status: number;
}

export interface UpstreamTolerance {
  /** Extra time for which the upstream remembers a key, so that requests sent in time also arrive in time. */
  readonly ttlMargin: Millis;
  /** With a longer event loop lag, send times are unreliable. */
  readonly maxLag: Millis;
  /** The latency of every fifth write is up to this much longer. */
  readonly slowness?: Millis;
  /** It remembers a key for so many lags longer: a request may wait for several turns of a slow event loop. */
  readonly perLag?: number;
  /** Stores declines of PUT and DELETE too, and for ever: an attempt that was given up may arrive after those that follow it. */
  readonly storesAllDeclines?: boolean;
}

/** For a proxy in the same process. */
const IN_ONE_PROCESS: UpstreamTolerance = { ttlMargin: 300, maxLag: 40 };

export class IdempotentUpstream {
  readonly #topology: Topology;
  readonly #random: Random;
  readonly #requests: ReadonlyMap<number, OracleRequest>;
  readonly #loop = new EventLoopLag();
  readonly #times = new Map<string, number>();
  readonly #tolerance: UpstreamTolerance;
  readonly #onCharge: (ask: OracleRequest) => void;
  #servers: readonly Server[] = [];
  #keys: readonly Map<string, Entry>[] = [];

  /** @param onCharge called each time that an intent is carried out */
  constructor(
    topology: Topology,
    random: Random,
    asks: ReadonlyMap<number, OracleRequest>,
    tolerance: UpstreamTolerance = IN_ONE_PROCESS,
    onCharge: (ask: OracleRequest) => void = () => undefined,
  ) {
    this.#topology = topology;
    this.#random = random;
    this.#requests = asks;
    this.#tolerance = tolerance;
    this.#onCharge = onCharge;
  }

  /** @returns their addresses */
  async listen(): Promise<string[]> {
    const { endpoints, sharesKeys } = this.#topology;
    const common = new Map<string, Entry>();
    const stores = Array.from({ length: endpoints }, () => (sharesKeys ? common : new Map<string, Entry>()));
    const servers = await Promise.all(
      stores.map((keys, i) => listen((request, response) => this.#answer(`at ${i}`, keys, request, response))),
    );
    this.#servers = servers.map(({ server }) => server);
    this.#keys = stores;
    return servers.map(({ url }) => url);
  }

  closeConnections(): void {
    for (const server of this.#servers) server.closeAllConnections();
  }

  /** Frees the memory of an intent that no request will name again. */
  drop(intent: Intent): void {
    this.#times.delete(intent.name);
    for (const keys of this.#keys) keys.delete(nameOf(intent));
  }

  /** Returns how often the intent was carried out, at all endpoints. */
  times({ name }: Intent): number {
    return this.#times.get(name) ?? 0;
  }

  async #answer(
    place: string,
    keys: Map<string, Entry>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const ask = this.#requests.get(Number(headerOf(request.rawHeaders, 'x-ask')));
    if (ask === undefined) return void response.writeHead(500).end();
    const random = this.#random;
    const fault = random();
    const note = (what: string): void => void ask.intent.history.push(`${what} ${place} to ${ask.number}`);
    const open = (what: string): void => {
      ask.isOpen = true;
      note(what);
    };
    const reject = (status: number): void => {
      note(String(status));
      if (status === 429 && random() < 0.5) response.setHeader('Retry-After-Ms', String(Math.ceil(50 * random())));
      response.writeHead(status).end('{}');
    };

    if (fault < 0.03) {
      open('reset unread');
      return void request.socket.destroy();
    }
    // Some respond, and some act, before the body has arrived.
    const isEarly = random() < 0.2;
    // The proxy cannot know that this upstream does not act on a partial body.
    if (!isEarly && !(await isWhole(request))) return open('cut short');
    if (isEarly) request.resume();
    if (fault < 0.1) return reject(pickOf(EDGE, random));
    if (fault < 0.12) return reject(429);
    if (fault < 0.15) return reject(pickOf([501, 503, 505, 529], random));
    if (fault < 0.17) {
      open('gateway error');
      return void response.writeHead(pickOf([502, 504], random)).end('{}');
    }

    const { slowness } = this.#tolerance;
    const latency = 1 + 25 * random() + (slowness !== undefined && random() < 0.2 ? slowness * random() : 0);
    const { status, isReplayed } = this.#process(ask, keys, latency);
    ask.wasDeclined ||= status === 402;
    note(`processed as ${status}${isReplayed ? ' again' : ''}`);
    await sleep(latency);
    if (fault < 0.25) {
      open('reset');
      return void request.socket.destroy();
    }
    if (fault < 0.3) {
      open('failure');
      return void response.writeHead(pickOf([500, 502, 504, 520, 524], random)).end('{}');
    }
    // Only with a short timeout, to keep the test fast.
    if (fault < 0.36 && !ask.intent.isPatient) return open('silence');
    if (status === 409) return void response.writeHead(409).end('{}');
    const headers = {
      'X-Of-Write': '1',
      ...(isReplayed && this.#topology.marksReplays && { 'Idempotent-Replayed': 'true' }),
    };
    response.writeHead(status, headers);
    const name = ask.intent.name;
    if (fault < 0.33) {
      open('broken off');
      response.write(name);
      await sleep(2);
      return void request.socket.destroy();
    }
    if (ask.manner.leaves !== 'answering') return void response.end(name);
    response.write(name);
    for (let i = 0; i < 1000 && !ask.hasLeft; i += 1) await sleep(5);
    response.end();
  }

  #process(ask: OracleRequest, keys: Map<string, Entry>, latency: Millis): { status: number; isReplayed: boolean } {
    const { intent } = ask;
    const { ttl, storesDeclines } = this.#topology;
    const { key, method } = intent;
    const now = performance.now();
    const name = nameOf(intent);
    const times = this.times(intent);
    const isRepeatable = method === 'PUT' || method === 'DELETE';
    const isAgain = isRepeatable && times > 0;
    // A write with an idempotent method may go to any endpoint, so a decline stored at one does not bind the others.
    const isStored = storesDeclines && (!isRepeatable || this.#tolerance.storesAllDeclines === true);
    const known = key === undefined ? undefined : keys.get(name);
    const isForEver = isRepeatable && this.#tolerance.storesAllDeclines === true && known?.status === 402;
    if (known !== undefined && (isForEver || !this.#isForgotten(known, ttl, now))) {
      if (now < known.doneAt) return { status: 409, isReplayed: false };
      if (known.status !== 402 || isStored) return { status: known.status, isReplayed: true };
    }
    const isDeclined = !isAgain && (intent.isHopeless || this.#random() < 0.3);
    const status = isDeclined ? 402 : 201;
    const doneAt = now + latency + (this.#random() < 0.2 ? 50 * this.#random() : 0);
    if (key !== undefined) keys.set(name, { since: now, doneAt, status });
    if (!isDeclined && !isAgain) {
      this.#times.set(intent.name, times + 1);
      this.#onCharge(ask);
    }
    return { status, isReplayed: false };
  }

  #isForgotten({ since }: Entry, ttl: Millis | undefined, now: Millis): boolean {
    const { ttlMargin, maxLag, perLag = 0 } = this.#tolerance;
    const lag = this.#loop.worstLag();
    return ttl !== undefined && lag < maxLag && now > since + ttl + ttlMargin + perLag * lag;
  }
}

function nameOf({ tenant, method, key }: Intent): string {
  return `${tenant} ${method} ${key}`;
}

/** Resolves to true when the body is complete, to false if it never will be. */
function isWhole(request: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    request.on('end', () => resolve(true));
    request.on('close', () => resolve(request.complete));
    request.resume();
  });
}
