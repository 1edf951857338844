/**
 * Responds to uploads to a mounted proxy that cannot be read completely, before the host program does: its plain 400 or 408 would
 * mean that the request was not processed, although the upstream may have acted on a part of it.
 */
import type { IncomingMessage } from 'node:http';
import { Server as HttpServer, ServerResponse, STATUS_CODES } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { UPLOAD_TIMEOUT_PROBLEMS } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import { lingeringClose } from './end-response.ts';
import type { MountedRequest } from './mounted-request.ts';
import { problemForParseError } from './parse-error-problem.ts';

interface Upload {
  readonly request: MountedRequest;
  readonly response: ServerResponse;
}

/** The last upload of each connection. */
const uploads = new WeakMap<Socket, Upload>();
const watchedServers = new WeakSet<HttpServer | HttpsServer>();

/** Watches an upload until it is complete. */
export function watchUpload({ socket }: IncomingMessage, request: MountedRequest, response: ServerResponse): void {
  uploads.set(socket, { request, response });
  // The server that emits the event: a Fastify that listens at several addresses has a server for each (`multipleBindings`).
  const server: unknown = Reflect.get(socket, 'server');
  if (!(server instanceof HttpServer || server instanceof HttpsServer) || watchedServers.has(server)) return;
  watchedServers.add(server);
  server.prependListener('clientError', (error: NodeJS.ErrnoException, connection: Socket) => {
    const isOurs = respondToUpload(error, connection);
    if (!isOurs && server.listenerCount('clientError') === 1) respondAsNode(error, connection);
  });
}

/** @returns false if the error belongs to a request of the host program, or to one that is complete */
function respondToUpload(error: NodeJS.ErrnoException, socket: Socket): boolean {
  const upload = uploads.get(socket);
  // The parser reads one request after another: the error is in the body of this one unless that is complete.
  if (upload === undefined || upload.request.complete) return false;
  const { request, response } = upload;
  const problem = problemFor(error);
  if (problem !== undefined && response.socket === socket) request.bodyListener?.onMalformed(problem);
  // Handlers of the host program write only to a writable socket. The outcome is also unknown to the client if the connection closes
  // without a response, for example because an earlier response is still being sent.
  if (response.writableEnded) lingeringClose(socket);
  else socket.destroy();
  return true;
}

/** Undefined if the connection broke. */
function problemFor(error: NodeJS.ErrnoException): Problem | undefined {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? UPLOAD_TIMEOUT_PROBLEMS.slow : problemForParseError(error);
}

/** The status of an error by its code; 400 for any other. */
const STATUS_BY_CODE: ReadonlyMap<string | undefined, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
]);

/** What Node 24 does without a `clientError` listener (_http_server.js, `socketOnError`), as on Fastify's additional servers. */
function respondAsNode(error: NodeJS.ErrnoException, socket: Socket): void {
  const current: unknown = Reflect.get(socket, '_httpMessage');
  const hasBegun = current instanceof ServerResponse && current.headersSent;
  const status = STATUS_BY_CODE.get(error.code) ?? 400;
  if (socket.writable && !hasBegun) {
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy(error);
}
