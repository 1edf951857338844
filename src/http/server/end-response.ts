/** Ends responses and connections so that the client receives everything, or notices that it did not. */
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';
import { batchWhenBusy } from '../undici/write-batching.ts';
import type { HttpServerRequest } from './server-request.ts';
import { isBodyPending } from './server-request.ts';
import type { HttpServerResponse } from './server-response.ts';

/** How long a client may keep sending after its last response. */
const LINGERING_CLOSE: Millis = 3000;

/**
 * Node 24 joins a head and a body into one write if the body is a string, which saves 10 µs a response up to this size
 * (docs/performance.md). Latin1 keeps every byte.
 */
const MAX_JOINED_BODY = 16 * 1024;

/**
 * Ends a response. Over HTTP/1.1 the rest of the request body is read and dropped: see `lingeringClose`.
 * @param lastChunk of the body, still to be written
 */
export function endResponse(response: HttpServerResponse, request: HttpServerRequest, lastChunk?: Buffer): void {
  if (isBodyPending(request) && !request.expectsContinue && isHttp1(response)) request.resume();
  if (lastChunk === undefined) response.end();
  else if (lastChunk.length <= MAX_JOINED_BODY && isHttp1(response)) {
    const text = lastChunk.toString('latin1');
    batchWhenBusy(() => response.end(text, 'latin1'));
  } else response.end(lastChunk);
}

/** Breaks off a response if the client does not read it within this time. */
export function closeIfUnread(
  response: HttpServerResponse,
  unreadTimeout: Millis,
  abort: () => void = () => response.destroy(),
): void {
  // Over HTTP/2 a response that was sent closes only with the upload.
  const timer = setTimeout(() => response.writableFinished || abort(), unreadTimeout);
  response.once('close', () => clearTimeout(timer));
}

/**
 * Ends our side of a connection, and reads the client's side for a while. An immediate close would reset the connection while
 * the client still sends, and a client that sends everything before it reads would not see its response (RFC 9112 §9.6).
 */
export function lingeringClose(socket: Duplex): void {
  // A response may close because its connection did. The timer would then run to its end, and keep the process running.
  if (socket.destroyed) return;
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGERING_CLOSE);
  socket.once('close', () => clearTimeout(timer));
}

/** Breaks off a response so that the client notices. */
export function abortResponse(response: HttpServerResponse, request: HttpServerRequest): void {
  // HTTP/1.0 ends a body of unknown length by closing the connection. Only a reset shows that the body is incomplete.
  if (request.httpVersion === '1.0' && isHttp1(response) && !response.writableEnded) resetSocket(response.socket);
  response.destroy();
}

/** Node 24 throws for anything but TCP. Not to be called after `end`: Node would not release the socket. */
function resetSocket(socket: Socket | null): void {
  try {
    socket?.resetAndDestroy();
  } catch {
    // The caller closes it.
  }
}

/** Others are of HTTP/2, or go to no client. */
export function isHttp1(response: HttpServerResponse): response is ServerResponse {
  return response instanceof ServerResponse;
}
