/** A client that sends requests unchanged: no normalised paths, no added headers but Host and Connection. */
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:http';
import { atEnd } from '../at-end.ts';
import { eventually } from '../proxy/tidegate.ts';

export interface Sent {
  /** GET unless given. */
  readonly method?: string;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
  /** Sent with a Content-Length unless `chunked`. */
  readonly body?: string | Buffer;
  readonly chunked?: boolean;
  /** Aborts the connection. */
  readonly signal?: AbortSignal;
  /** A new connection for each request unless given. */
  readonly agent?: Agent;
}

export interface Received {
  readonly status: number;
  readonly reason: string;
  /** The first value of a header, by its name in any case. */
  header(name: string): string | undefined;
  /** Names and values in turn, as received. */
  readonly headers: readonly string[];
  readonly trailers: readonly string[];
  readonly body: Buffer;
  readonly json: () => Record<string, unknown>;
  /** From the call to the head, and to the end, in milliseconds. */
  readonly toHead: number;
  readonly took: number;
}

/** Resolves to the complete response; rejects if the connection breaks before. */
export function send(url: string, target: string, sent: Sent = {}): Promise<Received> {
  const since = performance.now();
  return new Promise((resolve, reject) => {
    const outgoing = begin(url, target, sent, (incoming) => {
      const toHead = performance.now() - since;
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        resolve(receive(incoming, Buffer.concat(chunks), toHead, performance.now() - since));
      });
    });
    outgoing.on('error', reject);
    outgoing.end(sent.body);
  });
}

/** Starts a request whose body the test writes. Errors without a listener are ignored. */
export function begin(
  url: string,
  target: string,
  { method = 'GET', headers = [], body, chunked = false, signal, agent }: Sent,
  onResponse?: (incoming: IncomingMessage) => void,
): ReturnType<typeof request> {
  const { host, hostname, port } = new URL(url);
  const all = has(headers, 'host') ? [...headers] : ['Host', host, ...headers];
  if (chunked) all.push('Transfer-Encoding', 'chunked');
  else if (body !== undefined && !has(headers, 'content-length')) {
    all.push('Content-Length', String(Buffer.byteLength(body)));
  }
  const outgoing = request(
    {
      host: hostname,
      port,
      method,
      path: target,
      headers: all,
      setDefaultHeaders: false,
      agent: agent ?? false,
      ...(signal === undefined ? {} : { signal }),
    },
    onResponse,
  );
  outgoing.on('error', () => undefined);
  return outgoing;
}

/** Creates a keep-alive agent. It is closed when the test ends. */
export function keepAlive(): Agent {
  const agent = new Agent({ keepAlive: true });
  atEnd(() => agent.destroy());
  return agent;
}

/** Sends a request, and aborts it as soon as the condition holds. */
export async function sendAndLeave(
  url: string,
  target: string,
  sent: Sent,
  isTime: () => boolean | Promise<boolean>,
): Promise<void> {
  const leaving = new AbortController();
  const answer = send(url, target, { ...sent, signal: leaving.signal }).then(
    ({ status }) => `answered with ${status} before the client left`,
    () => undefined,
  );
  await eventually(isTime, Boolean);
  leaving.abort();
  const problem = await answer;
  if (problem !== undefined) throw new Error(problem);
}

/** Returns a header's value from a flat list, case-insensitively; several values are joined by ", ". */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  const values: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name.toLowerCase()) values.push(headers[i + 1] ?? '');
  }
  return values.length === 0 ? undefined : values.join(', ');
}

function receive(incoming: IncomingMessage, body: Buffer, toHead: number, took: number): Received {
  const { statusCode = 0, statusMessage = '', rawHeaders, rawTrailers } = incoming;
  return {
    status: statusCode,
    reason: statusMessage,
    header: (name) => headerOf(rawHeaders, name),
    headers: rawHeaders,
    trailers: rawTrailers,
    body,
    json: () => JSON.parse(body.toString()) as Record<string, unknown>,
    toHead,
    took,
  };
}

function has(headers: readonly string[], name: string): boolean {
  return headers.some((each, i) => i % 2 === 0 && each.toLowerCase() === name);
}
