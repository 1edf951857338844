import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

const TYPE = 'application/problem+json';

/** Answers in RFC 9457's form. @param more members of the problem */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  title: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): FastifyReply {
  return reply
    .code(status)
    .type(TYPE)
    .send(bodyOf(status, title, detail, more));
}

/** As `sendProblem`, where the parser gave up and there is no request to reply to. Ends the connection. */
export function writeProblem(socket: Socket, { code }: NodeJS.ErrnoException): void {
  if (!socket.writable) return void socket.destroy();
  const [status, detail] = UNREADABLE[code ?? ''] ?? [400, 'This is not HTTP/1.1.'];
  const title = STATUS_CODES[status] ?? '';
  const body = bodyOf(status, title, detail);
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `Content-Type: ${TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

const UNREADABLE: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunks of the body have too many extensions.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not come in time.'],
};

function bodyOf(status: number, title: string, detail: string, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ type: 'about:blank', title, status, detail, ...more });
}
