/** The one place that writes to a client. */
import type { ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { sendInTurn } from '../undici/write-batching.ts';
import { Http2Outbound } from './http2-stream-response.ts';
import type { Inbound } from './server-request.ts';
import { isComing } from './server-request.ts';
import type { Outbound } from './server-response.ts';
import type { Problem } from '../response/problem-details.ts';
import { without } from '../headers/raw-headers.ts';
import { rateLimitOf } from '../headers/retry-after-header.ts';
import type { Upgrade } from './upgrade.ts';
import { WEBSOCKET } from './upgrade.ts';

export interface Told {
  /** Goes out with every answer, and finds the story of the request again. */
  readonly requestId: string;
  readonly via: string;
}

/** How long a client may go on when it has its last answer. */
const LINGER: Millis = 3000;

/**
 * Of a body up to this size Node 24 makes one string with its head, where it gets a string: to write that costs some 10 µs less
 * than to write both (docs/performance.md). Latin1 keeps every byte.
 */
const JOINED = 16 * 1024;

/** Writes an answer of our own; to be ended by `endAnswer`. `retryAfter` in whole seconds, as it is told. */
export function writeProblem(response: Outbound, problem: Problem, told: ToldOfProblem): void {
  const body = bodyOf(problem, told.retryAfter);
  const headers = headersOf(problem, body, told);
  const { wrapping } = told;
  if (wrapping !== undefined) headers.push(...wrapping.headers);
  const status = wrapping?.status ?? problem.status;
  response.writeHead(status, STATUS_CODES[status] ?? '', headers);
  response.write(body);
  boundUnread(response, told.unread);
}

function boundUnread(response: Outbound, unread: Millis): void {
  const timer = setTimeout(() => response.destroy(), unread);
  response.once('close', () => clearTimeout(timer));
}

/** How an answer goes out where its own status would be misread: see http/ext-authz/ingress-dialect.ts. */
export interface Wrapping {
  readonly status: number;
  /** Beside its own; names and values in turn. */
  readonly headers: readonly string[];
}

/** @param retryAfter in whole seconds, as it is told */
export type Wrap = (problem: Problem, retryAfter: number | undefined) => Wrapping | undefined;

export interface ToldOfProblem extends ToldInHead {
  readonly wrapping?: Wrapping | undefined;
  /** How long the client may leave it unread. */
  readonly unread: Millis;
}

type ToldOfFinal = Told & Pick<ToldOfProblem, 'unread'>;

interface ToldInHead extends Told {
  readonly retryAfter: number | undefined;
  readonly attempts: number;
  /** The idempotency key that the request was given here. */
  readonly mintedKey?: string | undefined;
  /** The connection ends with this answer. */
  readonly close: boolean;
  /** What a page of another origin needs to read it; names and values in turn. */
  readonly cors?: readonly string[] | undefined;
}

function headersOf(problem: Problem, body: string, told: ToldInHead): string[] {
  // biome-ignore format: name and value in turn
  const headers = [
    'Content-Type', 'application/problem+json',
    'Content-Length', String(Buffer.byteLength(body)),
    'Proxy-Status', `tidegate; error=${problem.proxyError}; details="${problem.reason}"`,
    'Via', told.via,
    'X-Request-Id', told.requestId,
    'Tidegate-Request-Id', told.requestId,
    'Tidegate-Attempts', String(told.attempts),
    'Cache-Control', 'no-store',
  ];
  if (problem.unknown) headers.push('Tidegate-Outcome', 'unknown');
  if (told.mintedKey !== undefined) headers.push('Tidegate-Idempotency-Key', told.mintedKey);
  if (told.retryAfter !== undefined) {
    headers.push('Retry-After', String(told.retryAfter));
    if (problem.status === 429) headers.push('RateLimit', rateLimitOf(told.retryAfter));
  }
  if (told.cors !== undefined) headers.push(...told.cors);
  if (told.close) headers.push('Connection', 'close');
  return headers;
}

/** Writes an answer of our own that has no body; to be ended by `endAnswer`. @param headers names and values in turn */
export function writeEmpty(response: Outbound, status: number, headers: readonly string[]): void {
  const all = status === 204 ? [...headers] : ['Content-Length', '0', ...headers];
  response.writeHead(status, STATUS_CODES[status] ?? '', all);
}

/** Writes an answer of our own that is no problem; to be ended by `endAnswer`. @param headers names and values in turn */
export function writeFinal(response: Outbound, headers: readonly string[], body: string, told: ToldOfFinal): void {
  // biome-ignore format: name and value in turn
  response.writeHead(200, 'OK', [
    'Content-Length', String(Buffer.byteLength(body, 'latin1')),
    ...headers,
    'Via', told.via,
    'X-Request-Id', told.requestId,
    'Tidegate-Request-Id', told.requestId,
    'Tidegate-Attempts', '0',
    'Cache-Control', 'no-store',
  ]);
  response.write(Buffer.from(body, 'latin1'));
  boundUnread(response, told.unread);
}

/**
 * Ends an answer. What the client still sends over HTTP/1.1 is let go: see `closeInStages`.
 * @param rest of its body that is still to be written
 */
export function endAnswer(response: Outbound, request: Inbound, rest?: Buffer): void {
  if (isComing(request) && !request.expectsContinue && isHttp1(response)) request.resume();
  if (rest === undefined) response.end();
  else if (rest.length <= JOINED && isHttp1(response)) {
    const text = rest.toString('latin1');
    sendInTurn(() => response.end(text, 'latin1'));
  } else response.end(rest);
}

/**
 * Says that nothing more comes, and listens for a while to what does: to close at once would reset the connection where
 * the client still sends, and one that sends all before it reads would never see its answer (RFC 9112 §9.6).
 */
export function closeInStages(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER);
  socket.once('close', () => clearTimeout(timer));
}

/** Breaks an answer off, so that its client sees it. */
export function breakOff(response: Outbound, request: Inbound): void {
  // To a client of HTTP/1.0 a body without a length is whole when the connection is closed; not so when it is reset.
  if (request.httpVersion === '1.0' && isHttp1(response) && !response.writableEnded) reset(response.socket);
  response.destroy();
}

/** Only TCP can be reset: Node 24 throws over anything else. Never after `end`: it would not let go of the socket then. */
function reset(socket: Socket | null): void {
  try {
    socket?.resetAndDestroy();
  } catch {
    // Closed by the caller.
  }
}

function bodyOf(problem: Problem, retryAfter: number | undefined): string {
  const { title, status, detail, reason } = problem;
  return JSON.stringify({
    type: `https://tidegate.dev/problems/${reason.replaceAll('_', '-')}`,
    title,
    status,
    detail,
    reason,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(problem.unknown ? { outcome: 'unknown' } : {}),
    // An extension member (RFC 9457 §3.2) for SDKs that look for an error in the body and never at the status:
    // stripe 23.1.0 takes any JSON without it for success, and a payment that may not have happened for one that has.
    error: { type: errorType(status), code: reason, message: detail },
  });
}

/** In the words that payment APIs share. */
function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (status === 409) return 'idempotency_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}

/** Writes the head of the upstream's answer. What Node refuses to write is told as false: nothing has gone out then. */
export function writeHead(response: Outbound, status: number, reasonPhrase: string, headers: string[]): boolean {
  const usual = STATUS_CODES[status] ?? '';
  const reason = reasonPhrase !== usual && isWritableReason(reasonPhrase) ? reasonPhrase : usual;
  try {
    // RFC 9110 §8.6: a 204 has no Content-Length, whatever the upstream says.
    response.writeHead(status, reason, status === 204 ? without(headers, 'content-length') : headers);
    return true;
  } catch (error) {
    if (!isTrailerRefused(error)) return false;
    return writeHead(response, status, reasonPhrase, without(headers, 'trailer'));
  }
}

/**
 * Writes an answer on the way to the final one (RFC 9110 §15.2), with the reason phrase that Node knows for its status.
 * False: no more of them, the client knows none (HTTP/1.0) or takes them more slowly than they come.
 */
export function writeInformation(response: Outbound, status: number, headers: string[]): boolean {
  if (response instanceof Http2Outbound) return response.writeInformation(status, headers);
  if (!isHttp1(response)) return false;
  if (response.req.httpVersion === '1.0' || response.headersSent || response.destroyed) return false;
  if (!('writeInformation' in response)) return false; // before Node 24.18: 103 alone could be written, and not every one
  response.writeInformation(status, headers);
  return response.writableLength < response.writableHighWaterMark;
}

/** There are no others. */
function isHttp1(response: Outbound): response is ServerResponse {
  return !(response instanceof Http2Outbound);
}

/** Node 24 lets no trailers be announced where it will send none: to HEAD, beside a length, to HTTP/1.0. */
function isTrailerRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_HTTP_TRAILER_INVALID';
}

/** Agrees to change to another protocol. @returns the connection, on which it is spoken from here on */
export function writeSwitch(upgrade: Upgrade, headers: readonly string[]): Duplex {
  const head = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${WEBSOCKET}`];
  for (let i = 0; i + 1 < headers.length; i += 2) head.push(`${headers[i] ?? ''}: ${headers[i + 1] ?? ''}`);
  upgrade.response.statusCode = 101;
  const socket = upgrade.release();
  socket.write(`${head.join('\r\n')}\r\n\r\n`, 'latin1');
  return socket;
}

/**
 * Answers what never became a request: the parser gave up, and no response object exists. Ends the connection.
 * @param retryAfter in whole seconds
 */
export function writeRawProblem(socket: Duplex, problem: Problem, told: Told, retryAfter: number | undefined): void {
  if (!socket.writable) return; // an answer has ended it already
  const body = bodyOf(problem, retryAfter);
  const headers = headersOf(problem, body, { ...told, retryAfter, attempts: 0, close: true });
  const lines = [`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push(`Date: ${new Date().toUTCString()}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  closeInStages(socket);
}

/** Node throws on anything else in a reason phrase. */
function isWritableReason(phrase: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(phrase);
}
