/** The one place that writes to a client. */
import type { ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Problem } from './problem.ts';

export interface Told {
  /** Goes out with every answer, and finds the story of the request again. */
  readonly requestId: string;
  readonly via: string;
}

/** Writes an answer of our own. `retryAfter` in whole seconds, as it is told. */
export function writeProblem(
  response: ServerResponse,
  problem: Problem,
  told: Told & { readonly retryAfter: number | undefined; readonly attempts: number; readonly close: boolean },
): void {
  const body = bodyOf(problem, told.retryAfter);
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
  if (told.retryAfter !== undefined) {
    headers.push('Retry-After', String(told.retryAfter));
    if (problem.status === 429) headers.push('RateLimit', `"tidegate";r=0;t=${told.retryAfter}`);
  }
  if (told.close) headers.push('Connection', 'close');
  response.writeHead(problem.status, headers);
  response.end(body);
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
  });
}

/** Writes the head of the upstream's answer. What Node refuses to write is told as false: nothing has gone out then. */
export function writeHead(
  response: ServerResponse,
  status: number,
  reasonPhrase: string,
  headers: string[],
): boolean {
  try {
    response.writeHead(status, isWritableReason(reasonPhrase) ? reasonPhrase : (STATUS_CODES[status] ?? ''), headers);
    return true;
  } catch {
    return false;
  }
}

/** A request that never became one: the parser gave up. No response object exists. */
export function writeRawProblem(socket: Duplex, problem: Problem): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = bodyOf(problem, undefined);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Proxy-Status: tidegate; error=${problem.proxyError}; details="${problem.reason}"`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Node throws on anything else in a reason phrase. */
function isWritableReason(phrase: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(phrase);
}
