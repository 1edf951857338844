import type { ClientHttp2Session } from 'node:http2';
import { connect } from 'node:http2';
import { MAX_SESSION_MEMORY } from '../../../src/http/undici/http2-session-memory.ts';

/** Shared HTTP/2 connections, reopened after they are lost. */
export class SharedSessions {
  readonly #url: string;
  readonly #ca: string;
  readonly #sessions = new Map<number, ClientHttp2Session>();

  /** @param ca PEM text of the CA */
  constructor(url: string, ca: string) {
    this.#url = url;
    this.#ca = ca;
  }

  /** @param nth which of the connections */
  of(nth: number): ClientHttp2Session {
    const kept = this.#sessions.get(nth);
    if (kept !== undefined && !kept.closed && !kept.destroyed) return kept;
    const session = connect(this.#url, { ca: this.#ca, maxSessionMemory: MAX_SESSION_MEMORY });
    session.on('error', () => undefined); // reported by its streams
    this.#sessions.set(nth, session);
    return session;
  }

  close(): void {
    for (const session of this.#sessions.values()) session.destroy();
    this.#sessions.clear();
  }
}
