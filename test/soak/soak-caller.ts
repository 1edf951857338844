import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/scalars.ts';
import { SharedSessions } from '../support/clients/shared-sessions.ts';
import type { CallOptions, CallResult } from './call.ts';
import { call } from './call.ts';
import { callHttp2 } from './call-http2.ts';
import { agentFor } from './proxy-connection.ts';
import type { SoakCounts } from './soak-counts.ts';
import type { WebSocketResult } from './websocket-call.ts';
import { callWebSocket } from './websocket-call.ts';

export interface ProxyUrls {
  readonly url: string;
  /** PEM text of the CA that signed its certificate. */
  readonly ca: string;
  /** Through a relay that carries a few bytes at a time. */
  readonly slow: string;
  /** Through a relay that breaks connections. */
  readonly broken: string;
}

/** A longer Retry-After is cut to this: clients that stay away are no load. */
const MAX_WAIT: Millis = 1500;

/** Clients that share one HTTP/2 connection. */
const CLIENTS_PER_SESSION = 6;

export interface SoakRequest extends Omit<CallOptions, 'path'> {
  readonly name: string;
  readonly query?: string;
  /** Instead of the proxy itself: a relay in front of it. */
  readonly proxyUrl?: string;
}

/** Sends the requests of all clients, counts their results, and checks the answers to charges. */
export class SoakCaller {
  readonly #urls: ProxyUrls;
  readonly #counts: SoakCounts;
  #agent: Agent;
  /** Undefined without TLS: then no client uses HTTP/2. */
  readonly #sessions: SharedSessions | undefined;
  #isRunning = false;
  #intents = 0;
  /** The charge id that each intent was answered with. */
  readonly charges = new Map<string, string>();

  constructor(urls: ProxyUrls, counts: SoakCounts) {
    this.#urls = urls;
    this.#agent = agentFor(urls.url, urls.ca);
    if (urls.url.startsWith('https:')) this.#sessions = new SharedSessions(urls.url, urls.ca);
    this.#counts = counts;
  }

  start(): void {
    this.#isRunning = true;
    this.#agent = agentFor(this.#urls.url, this.#urls.ca);
  }

  /** Ends retries of charges; `close` ends the connections. */
  stop(): void {
    this.#isRunning = false;
  }

  close(): void {
    this.#agent.destroy();
    this.#sessions?.close();
  }

  /** Sends one charge: with a key until it succeeds, without one only while it cannot have taken effect. */
  async pay(path: string, name: string, keyed: boolean, bytes: number, leavesAfter?: Millis): Promise<void> {
    const intent = `${name}-${(this.#intents += 1)}`;
    const body = Buffer.from(`amount=100&currency=eur&metadata[intent]=${intent}&metadata[note]=${'x'.repeat(bytes)}`);
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-intent': intent,
      ...(keyed ? { 'idempotency-key': intent } : {}),
    };
    for (let tries = 0; tries < 4; tries += 1) {
      if (!this.#isRunning) return;
      const leaving = leavesAfter === undefined ? {} : { leavesAfter };
      const result = await this.request(path, { method: 'POST', name, headers, body, ...leaving });
      if (result.kind === 'answered' && result.status === 200) return this.#note(intent, result.body.toString());
      if (!keyed && (result.kind !== 'answered' || result.header('tidegate-outcome') === 'unknown')) return;
      const wait = result.kind === 'answered' ? 1000 * Number(result.header('retry-after')) : 0;
      await sleep(Math.min(MAX_WAIT, wait + 200));
    }
  }

  #note(intent: string, text: string): void {
    const { id, metadata } = JSON.parse(text) as { id: string; metadata: { intent: string } };
    if (metadata.intent !== intent) this.#fault(`${intent} was answered with the charge of ${metadata.intent}`);
    this.charges.set(intent, id);
  }

  async request(path: string, request: SoakRequest): Promise<CallResult> {
    this.#counts.countSent(path);
    const result = await this.call(path, request);
    this.#counts.countResult(path, result);
    return result;
  }

  /** Sends without counting the result. */
  async call(path: string, request: SoakRequest): Promise<CallResult> {
    const { name, query = '', proxyUrl, ...rest } = request;
    const options = { ...rest, path: `${path}${query}`, headers: { 'x-api-key': name, ...rest.headers } };
    const sharing = /^share-(\d+)$/.exec(name)?.[1];
    const session = sharing && this.#sessions?.of(Math.floor(Number(sharing) / CLIENTS_PER_SESSION));
    if (session) {
      const result = await callHttp2(session, options);
      // The connection ended before the request was processed: it may be sent again (RFC 9113 §8.7).
      const isUnread = result.kind === 'lost' && result.why.endsWith('NGHTTP2_REFUSED_STREAM');
      return isUnread ? this.call(path, request) : result;
    }
    const { url, ca } = this.#urls;
    return call(proxyUrl ?? url, { agent: proxyUrl === undefined ? this.#agent : false, ca }, options);
  }

  talk(path: string, name: string, random: Random): Promise<WebSocketResult> {
    return callWebSocket(this.#urls.url, this.#agent, { path, headers: { 'x-api-key': name }, random });
  }

  #fault(what: string): void {
    this.#counts.faults.push(what);
  }
}
