import type { Agent } from 'node:http';
import type { Millis } from '../../src/core/scalars.ts';
import { requestAt } from './proxy-connection.ts';

export interface CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Without a length. */
  readonly chunked?: boolean;
  /** Delay after each chunk of the response, in ms. */
  readonly readsEvery?: Millis;
  /** Aborts after this time, in ms, answered or not. */
  readonly leavesAfter?: Millis;
}

/** The result of a call. */
export type CallResult =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly header: (name: string) => string;
      readonly body: Buffer;
    }
  /** The response head arrived, but the body broke off. */
  | { readonly kind: 'cut'; readonly status: number }
  /**
   * The same, as its connection ended (GOAWAY): Node's client then drops data that it has not delivered yet, even of
   * a complete response. Only the log says which it was.
   */
  | { readonly kind: 'dropped'; readonly status: number; readonly id: string }
  | { readonly kind: 'left' }
  | { readonly kind: 'lost'; readonly why: string };

/** Longer than any response takes, in ms. */
export const CALL_TIMEOUT: Millis = 45_000;

/** Sends one request over HTTP/1.1 and returns its result. @param ca PEM text of the CA, for TLS */
export function call(
  url: string,
  { agent, ca }: { agent: Agent | false; ca: string },
  ask: CallOptions,
): Promise<CallResult> {
  const { method, path, headers = {}, body, chunked = false } = ask;
  const length = body === undefined || chunked ? {} : { 'content-length': String(body.length) };
  return new Promise((resolve) => {
    const outgoing = requestAt(url, { method, path, agent, ca, headers: { ...headers, ...length } });
    let status = 0;
    const settle = (result: CallResult): void => {
      clearTimeout(timeout);
      clearTimeout(leaving);
      resolve(result);
    };
    const timeout = setTimeout(() => {
      settle({ kind: 'lost', why: `no end within ${CALL_TIMEOUT} ms, status ${status}` });
      outgoing.destroy();
    }, CALL_TIMEOUT);
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
    // After the head the response decides: it may arrive before the body has been sent.
    outgoing.on('error', (error) => status === 0 && breakOff(error));
    outgoing.on('continue', () => outgoing.end(body));
    if (headers['expect'] === undefined) outgoing.end(body);
    else outgoing.flushHeaders();
  });
}
