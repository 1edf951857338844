import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Address, isLoopback } from '../config/values/listen-address.ts';
import { sendProblem } from './problem-response.ts';
import { isPagePath } from './serve-page.ts';

/** Returns undefined if the request may pass; otherwise it has sent the response. */
export type AccessGuard = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** Paths without secrets, for probes that cannot send a token. */
const UNAUTHENTICATED_PATHS: ReadonlySet<string> = new Set(['/livez', '/readyz']);

/**
 * Guards reads of the admin port. A request with the token passes. Without the token,
 * - on a loopback address, requests pass whose Host is a loopback name or address and whose Origin, if present, is that Host.
 *   A web page can make a browser connect to 127.0.0.1 under a name of its own (DNS rebinding), but the browser then sends that
 *   name as Host, and the page's origin as Origin;
 * - on a Unix socket, every request passes: the permissions of the file decide;
 * - elsewhere, only /livez, /readyz and the files of the page pass. The page asks for the token before it can show data.
 *
 * @throws Error if the address is not a loopback address and there is no token
 */
export function createReadGuard(listen: Address, token: string | undefined): AccessGuard {
  const hasToken = token === undefined ? () => false : createTokenCheck(token);
  if (listen.kind === 'unix') return () => undefined;

  if (isLoopback(listen)) {
    return (request, reply) => {
      const { host, origin } = request.headers;
      if (hasToken(request)) return undefined;
      // Browsers always send Host; HTTP/1.0 tools may omit it.
      if (host !== undefined && !namesLoopback(host)) {
        return sendProblem(reply, 421, 'Misdirected Request', 'The Host header must be a loopback name or address.');
      }
      if (origin === undefined || isOwnOrigin(origin, host)) return undefined;
      return sendProblem(reply, 403, 'Forbidden', 'Requests from pages of other origins are not allowed.');
    };
  }

  if (token === undefined) {
    throw new Error(`the admin port needs a token to listen on ${listen.host}, which is not a loopback address`);
  }
  return (request, reply) => {
    const path = requestPath(request);
    if (UNAUTHENTICATED_PATHS.has(path) || isPagePath(path) || hasToken(request)) return undefined;
    reply.header('www-authenticate', 'Bearer realm="tidegate"');
    return sendProblem(reply, 401, 'Unauthorized', 'Send the admin token as Authorization: Bearer.');
  };
}

/**
 * Guards actions. They need the token, on a loopback address too, because other users and browsers of the machine can connect
 * there. Requests from pages of another origin never pass. On a Unix socket, the permissions of the file decide.
 */
export function createWriteGuard(listen: Address, token: string | undefined): AccessGuard {
  const hasToken = token === undefined ? undefined : createTokenCheck(token);
  return (request, reply) => {
    const { host, origin, 'sec-fetch-site': site } = request.headers;
    if (origin !== undefined && !isSameOrigin(origin, host)) {
      return sendProblem(reply, 403, 'Forbidden', 'Requests from pages of other origins are not allowed.');
    }
    if (site !== undefined && site !== 'same-origin' && site !== 'none') {
      return sendProblem(reply, 403, 'Forbidden', 'Requests from pages of other sites are not allowed.');
    }
    if (listen.kind === 'unix' || hasToken?.(request) === true) return undefined;
    if (hasToken === undefined) return sendProblem(reply, 403, 'Forbidden', NO_TOKEN);
    reply.header('www-authenticate', 'Bearer realm="tidegate"');
    return sendProblem(reply, 401, 'Unauthorized', 'Send the admin token as Authorization: Bearer.');
  };
}

const NO_TOKEN =
  'Actions, and messages of deliveries, require a token. Set admin.token (at least 16 characters) in the configuration: admin: {listen: "127.0.0.1:9901", token: …}.';

/** As `isOwnOrigin`, but also with https, for a TLS proxy in front of the admin port. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  const from = origin.toLowerCase().replace(/^https?:\/\//, '');
  return host !== undefined && from === host.toLowerCase() && from !== origin.toLowerCase();
}

/** Whether an origin is this server. Sandboxed pages and local files have the origin `null`. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && origin.toLowerCase() === `http://${host.toLowerCase()}`;
}

export function requestPath(request: FastifyRequest): string {
  const query = request.url.indexOf('?');
  return query === -1 ? request.url : request.url.slice(0, query);
}

/** Compares in constant time. Hashes have equal length and do not reveal how much of a guess was right. */
function createTokenCheck(token: string): (request: FastifyRequest) => boolean {
  const expected = sha256(token);
  return ({ headers }) => {
    const presented = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
    return presented !== undefined && timingSafeEqual(sha256(presented), expected);
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Whether a Host header (name, IPv4 or [IPv6] address, optional port) is a loopback one. */
function namesLoopback(header: string): boolean {
  const [, ipv6, other = ''] = /^(?:\[([\da-f:.]+)\]|([^:[\]@/]+))(?::\d+)?$/i.exec(header) ?? [];
  return isLoopback({ kind: 'tcp', host: (ipv6 ?? other).toLowerCase(), port: 0 });
}
