import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

const PROBLEM_TYPE = 'application/problem+json';

/** Sends a problem document (RFC 9457). @param more additional members */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  title: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): FastifyReply {
  return reply
    .code(status)
    .type(PROBLEM_TYPE)
    .send(problemBody(status, title, detail, more));
}

/** Writes a problem document to a socket whose request could not be parsed, and closes the connection. */
export function writeProblemToSocket(socket: Socket, { code }: NodeJS.ErrnoException): void {
  if (!socket.writable) return void socket.destroy();
  const [status, detail] = PARSER_PROBLEMS[code ?? ''] ?? [400, 'The request is not valid HTTP/1.1.'];
  const title = STATUS_CODES[status] ?? '';
  const body = problemBody(status, title, detail);
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

const PARSER_PROBLEMS: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the body are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
};

function problemBody(
  status: number,
  title: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): string {
  return JSON.stringify({ type: 'about:blank', title, status, detail, ...more });
}
