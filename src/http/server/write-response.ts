/** Writes response heads, interim responses and the proxy's own responses other than problem documents. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { withoutHeader } from '../headers/raw-headers.ts';
import { closeIfUnread, isHttp1 } from './end-response.ts';
import { Http2StreamResponse } from './http2-stream-response.ts';
import type { HttpServerResponse } from './server-response.ts';
import type { Upgrade } from './upgrade.ts';
import { WEBSOCKET } from './upgrade.ts';
import type { ProblemResponseOptions, ResponseIds } from './write-problem.ts';

/** Writes a response without a body. The caller ends it with `endResponse`. @param headers names and values in turn */
export function writeEmpty(response: HttpServerResponse, status: number, headers: readonly string[]): void {
  writeOwnBody(response, status, headers, '');
}

/** As `writeEmpty`, with a body of our own. @returns the bytes of the body */
export function writeOwnBody(
  response: HttpServerResponse,
  status: number,
  headers: readonly string[],
  body: string,
): number {
  const length = Buffer.byteLength(body);
  const all = status === 204 ? [...headers] : ['Content-Length', String(length), ...headers];
  response.writeHead(status, STATUS_CODES[status] ?? '', all);
  if (length > 0) response.write(body);
  return length;
}

/**
 * Writes a 200 as the final recipient of a request. The caller ends it with `endResponse`.
 * @param headers names and values in turn
 * @returns the bytes of its body
 */
export function writeFinalRecipientResponse(
  response: HttpServerResponse,
  headers: readonly string[],
  body: string,
  options: ResponseIds & Pick<ProblemResponseOptions, 'unread'>,
): number {
  // biome-ignore format: name and value in turn
  response.writeHead(200, 'OK', [
    'Content-Length', String(Buffer.byteLength(body, 'latin1')),
    ...headers,
    'Via', options.via,
    'X-Request-Id', options.requestId,
    'Tidegate-Request-Id', options.requestId,
    'Tidegate-Attempts', '0',
    'Cache-Control', 'no-store',
  ]);
  response.write(Buffer.from(body, 'latin1'));
  closeIfUnread(response, options.unread);
  return Buffer.byteLength(body, 'latin1');
}

/** Writes the head of the upstream's response. @returns false if Node or the client refuses it: then nothing was sent */
export function writeResponseHead(
  response: HttpServerResponse,
  status: number,
  reasonPhrase: string,
  headers: string[],
): boolean {
  if (response instanceof Http2StreamResponse && !response.accepts(headers)) return false;
  const standardReason = STATUS_CODES[status] ?? '';
  const reason = reasonPhrase !== standardReason && isWritableReason(reasonPhrase) ? reasonPhrase : standardReason;
  // RFC 9110 §8.6: a 204 has no Content-Length, whatever the upstream sent.
  const fields = status === 204 ? withoutHeader(headers, 'content-length') : headers;
  const error = tryWriteHead(response, status, reason, fields);
  if (error === undefined) return true;
  if (!isTrailerError(error)) return false;
  return tryWriteHead(response, status, reason, withoutHeader(fields, 'trailer')) === undefined;
}

/** @returns what Node throws; then the response has the same headers as before; undefined if the head is written */
function tryWriteHead(response: HttpServerResponse, status: number, reason: string, fields: string[]): unknown {
  // With headers that hooks of an application have set, Node adds the others to these before it finds that one is not valid.
  const ofHooks = isHttp1(response) ? response.getHeaders() : {};
  try {
    response.writeHead(status, reason, fields);
    return undefined;
  } catch (error) {
    if (isHttp1(response)) {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      for (const [name, value] of Object.entries(ofHooks)) if (value !== undefined) response.setHeader(name, value);
    }
    return error;
  }
}

/** Interim responses forwarded for one request, all attempts together (RFC 9110 §15.2 lets a proxy drop them). */
export const MAX_INTERIM_RESPONSES = 32;

/**
 * Writes an interim response (RFC 9110 §15.2), with the reason phrase that Node knows for its status.
 * @returns false if no more must follow: the client uses HTTP/1.0, or reads them more slowly than they arrive
 */
export function writeInterimResponse(response: HttpServerResponse, status: number, headers: string[]): boolean {
  if (response instanceof Http2StreamResponse) return response.writeInformation(status, headers);
  if (!isHttp1(response)) return false;
  if (response.req.httpVersion === '1.0' || response.headersSent || response.destroyed) return false;
  if (!('writeInformation' in response)) return false; // before Node 24.18, only a 103 with a Link could be written
  response.writeInformation(status, headers);
  return response.writableLength < response.writableHighWaterMark;
}

/** Node 24 refuses a Trailer header if it sends no trailers: with HEAD, with a length, over HTTP/1.0. */
function isTrailerError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_HTTP_TRAILER_INVALID';
}

/** Agrees to change to another protocol. @returns the connection, which uses that protocol from here on */
export function writeSwitchingProtocols(upgrade: Upgrade, headers: readonly string[]): Duplex {
  const head = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${WEBSOCKET}`];
  for (let i = 0; i + 1 < headers.length; i += 2) head.push(`${headers[i] ?? ''}: ${headers[i + 1] ?? ''}`);
  upgrade.response.statusCode = 101;
  const socket = upgrade.takeSocket();
  socket.write(`${head.join('\r\n')}\r\n\r\n`, 'latin1');
  return socket;
}

/** Node throws for any other character in a reason phrase. */
function isWritableReason(phrase: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(phrase);
}
