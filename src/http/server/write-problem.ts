/** Writes problem documents (RFC 9457). */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';
import { formatRateLimit, POLICY_NAME } from '../headers/retry-after-header.ts';
import type { Problem } from '../response/problem.ts';
import { closeIfUnread, lingeringClose } from './end-response.ts';
import type { HttpServerRequest } from './server-request.ts';
import type { HttpServerResponse } from './server-response.ts';

export interface ResponseIds {
  /** Identifies the request in the log; sent with every response. */
  readonly requestId: string;
  readonly via: string;
}

/** How a response is sent if its own status would be misread: see http/ext-authz/ingress-dialect.ts. */
export interface MappedStatus {
  readonly status: number;
  /** Added to the response; names and values in turn. */
  readonly headers: readonly string[];
}

/** Undefined: the response is sent as it is. */
export type MapStatus = (problem: Problem, retryAfterSeconds: number | undefined) => MappedStatus | undefined;

interface ProblemHeadOptions extends ResponseIds {
  /** Whole seconds, as sent to the client. */
  readonly retryAfterSeconds: number | undefined;
  readonly attempts: number;
  /** The idempotency key that Tidegate generated for the request. */
  readonly mintedKey?: string | undefined;
  /** The connection ends with this response. */
  readonly close: boolean;
  /** The RateLimit-Policy of the client's class, for a 429; absent if the class has no rate and no quota. */
  readonly ratePolicy?: string | undefined;
  /** CORS headers that let a page of another origin read it; names and values in turn. */
  readonly cors?: readonly string[] | undefined;
}

export interface ProblemResponseOptions extends ProblemHeadOptions {
  readonly mappedStatus?: MappedStatus | undefined;
  /** How long the client may leave it unread. */
  readonly unread: Millis;
}

/** Writes a problem document. The caller ends the response with `endResponse`. @returns the bytes of its body */
export function writeProblem(
  response: HttpServerResponse,
  { verb }: Pick<HttpServerRequest, 'verb'>,
  problem: Problem,
  options: ProblemResponseOptions,
): number {
  const body = problemBody(problem, options.retryAfterSeconds);
  const headers = problemHeaders(problem, body, options);
  const { mappedStatus } = options;
  if (mappedStatus !== undefined) headers.push(...mappedStatus.headers);
  const status = mappedStatus?.status ?? problem.status;
  response.writeHead(status, STATUS_CODES[status] ?? '', headers);
  response.write(body);
  closeIfUnread(response, options.unread);
  return verb === 'HEAD' ? 0 : Buffer.byteLength(body);
}

/**
 * Responds to bytes that the parser could not read as a request, so that no response object exists. Ends the connection.
 * @param retryAfterSeconds whole seconds
 * @returns the bytes of its body
 */
export function writeRawProblem(
  socket: Duplex,
  problem: Problem,
  ids: ResponseIds,
  retryAfterSeconds: number | undefined,
): number {
  if (!socket.writable) return 0; // a response has ended it already
  const body = problemBody(problem, retryAfterSeconds);
  const headers = problemHeaders(problem, body, { ...ids, retryAfterSeconds, attempts: 0, close: true });
  const lines = [`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push(`Date: ${new Date().toUTCString()}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  lingeringClose(socket);
  return Buffer.byteLength(body);
}

function problemHeaders(problem: Problem, body: string, options: ProblemHeadOptions): string[] {
  // biome-ignore format: name and value in turn
  const headers = [
    'Content-Type', 'application/problem+json',
    'Content-Length', String(Buffer.byteLength(body)),
    'Proxy-Status', `tidegate; error=${problem.proxyError}; details="${problem.reason}"`,
    'Via', options.via,
    'X-Request-Id', options.requestId,
    'Tidegate-Request-Id', options.requestId,
    'Tidegate-Attempts', String(options.attempts),
    'Cache-Control', 'no-store',
  ];
  if (problem.challenge !== undefined) headers.push('WWW-Authenticate', problem.challenge);
  if (problem.unknown) headers.push('Tidegate-Outcome', 'unknown');
  if (options.mintedKey !== undefined) headers.push('Tidegate-Idempotency-Key', options.mintedKey);
  if (options.retryAfterSeconds !== undefined) {
    headers.push('Retry-After', String(options.retryAfterSeconds));
    if (problem.status === 429) {
      headers.push('RateLimit', formatRateLimit(options.retryAfterSeconds));
      if (options.ratePolicy !== undefined) headers.push('RateLimit-Policy', options.ratePolicy);
    }
  }
  if (options.cors !== undefined) headers.push(...options.cors);
  if (options.close) headers.push('Connection', 'close');
  return headers;
}

function problemBody(problem: Problem, retryAfterSeconds: number | undefined): string {
  const { title, status, reason, detail } = problem;
  return JSON.stringify({
    type: problemType(problem),
    title,
    status,
    detail,
    reason,
    ...(retryAfterSeconds === undefined ? {} : { retryAfter: retryAfterSeconds }),
    ...(problem.type === 'quota-exceeded' ? { 'violated-policies': [POLICY_NAME] } : {}),
    ...(problem.unknown ? { outcome: 'unknown' } : {}),
    // An extension member (RFC 9457 §3.2) for SDKs that look for an error in the body and ignore the status: stripe 23.1.0 takes
    // any JSON without it for success, and so a payment that may not have happened for one that has.
    error: { type: errorType(status), code: reason, message: detail },
  });
}

function problemType({ type, reason }: Problem): string {
  return type === undefined
    ? `https://tidegate.dev/problems/${reason.replaceAll('_', '-')}`
    : `https://iana.org/assignments/http-problem-types#${type}`;
}

/** Error types that payment APIs share. */
function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (status === 409) return 'idempotency_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}
