import type { Agent } from 'node:http';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { requestAt } from './reach.ts';

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Without a length. */
  readonly chunked?: boolean;
  /** What is waited after each piece of the answer. */
  readonly readsEvery?: Millis;
  /** Breaks off, answered or not. */
  readonly leavesAfter?: Millis;
}

/** What came of it. */
export type Heard =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly header: (name: string) => string;
      readonly body: Buffer;
    }
  /** A head came, and the body did not come to its end. */
  | { readonly kind: 'cut'; readonly status: number }
  /**
   * The same, as its connection was being ended (GOAWAY): Node's client then drops what it has and has not handed on yet, also of
   * an answer that came whole. Which of both it was, only the log knows.
   */
  | { readonly kind: 'dropped'; readonly status: number; readonly id: string }
  | { readonly kind: 'left' }
  | { readonly kind: 'lost'; readonly why: string };

/** Nothing that is answered at all takes so long. */
export const PATIENCE: Millis = 45_000;

/** Asks once over HTTP/1.1, and tells what came of it. @param ca vouches for who answers by TLS */
export function call(url: string, { agent, ca }: { agent: Agent | false; ca: string }, ask: Ask): Promise<Heard> {
  const { method, path, headers = {}, body, chunked = false } = ask;
  const length = body === undefined || chunked ? {} : { 'content-length': String(body.length) };
  return new Promise((resolve) => {
    const outgoing = requestAt(url, { method, path, agent, ca, headers: { ...headers, ...length } });
    let status = 0;
    const settle = (heard: Heard): void => {
      clearTimeout(patience);
      clearTimeout(leaving);
      resolve(heard);
    };
    const patience = setTimeout(() => {
      settle({ kind: 'lost', why: `no end within ${PATIENCE} ms, status ${status}` });
      outgoing.destroy();
    }, PATIENCE);
    const leave = (): void => {
      settle({ kind: 'left' });
      outgoing.destroy();
    };
    const leaving = ask.leavesAfter === undefined ? undefined : setTimeout(leave, ask.leavesAfter);
    const breakOff = (error: Error): void => {
      if (status === 0) settle({ kind: 'lost', why: error.message });
      else settle({ kind: 'cut', status });
    };
    outgoing.on('response', (incoming) => {
      status = incoming.statusCode ?? 0;
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        if (ask.readsEvery === undefined) return;
        incoming.pause();
        setTimeout(() => incoming.resume(), ask.readsEvery);
      });
      incoming.on('error', breakOff);
      incoming.on('end', () => {
        const header = (name: string): string => String(incoming.headers[name] ?? '');
        settle({ kind: 'answered', status, header, body: Buffer.concat(chunks) });
      });
    });
    // Once there is a head the answer decides: it may come before all has been sent.
    outgoing.on('error', (error) => status === 0 && breakOff(error));
    outgoing.on('continue', () => outgoing.end(body));
    if (headers['expect'] === undefined) outgoing.end(body);
    else outgoing.flushHeaders();
  });
}
