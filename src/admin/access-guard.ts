import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Address, isLoopback } from '../config/values/listen-address.ts';
import { sendProblem } from './problem-response.ts';
import { isPage } from './serve-page.ts';

/** Undefined when the request may pass; else it has been answered. */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** Harmless, and asked for by probes that cannot carry a token. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/livez', '/readyz']);

/**
 * Who may use the admin port. Whoever has the token may. Without it:
 * - on a loopback address, requests whose Host is a loopback name or address: a web page can make a browser connect to
 *   127.0.0.1 under a name of its own (DNS rebinding), but cannot make it send another Host; and whose Origin, if they
 *   have one, is that Host: a page of another origin may make a browser send requests there, and browsers say whose;
 * - on a Unix socket, everyone: the file's permissions decide;
 * - elsewhere, /livez and /readyz only, and the page, which asks for the token to show anything.
 *
 * @throws Error when the address is not a loopback one and there is no token.
 */
export function createGuard(listen: Address, token: string | undefined): Guard {
  const holdsToken = token === undefined ? () => false : createTokenCheck(token);
  if (listen.kind === 'unix') return () => undefined;

  if (isLoopback(listen)) {
    return (request, reply) => {
      const { host, origin } = request.headers;
      if (holdsToken(request)) return undefined;
      // Browsers always send Host; HTTP/1.0 tools need not.
      if (host !== undefined && !namesLoopback(host)) {
        return sendProblem(
          reply,
          421,
          'Misdirected Request',
          'This listener answers to loopback names and addresses only.',
        );
      }
      if (origin === undefined || isOwn(origin, host)) return undefined;
      return sendProblem(reply, 403, 'Forbidden', 'Pages of other origins have no business here.');
    };
  }

  if (token === undefined) {
    throw new Error(`the admin port needs a token to listen on ${listen.host}, which is not a loopback address`);
  }
  return (request, reply) => {
    const path = pathOf(request);
    if (OPEN_PATHS.has(path) || isPage(path) || holdsToken(request)) return undefined;
    reply.header('www-authenticate', 'Bearer realm="tidegate"');
    return sendProblem(reply, 401, 'Unauthorized', 'Send the admin token as Authorization: Bearer.');
  };
}

/**
 * Who may change anything: whoever has the token, from anywhere but a page of another origin; on a Unix socket, everyone
 * whom its file lets in. Nobody else, on a loopback address neither: other users of the machine, and its browsers, are there.
 */
export function createWriteGuard(listen: Address, token: string | undefined): Guard {
  const holdsToken = token === undefined ? undefined : createTokenCheck(token);
  return (request, reply) => {
    const { host, origin, 'sec-fetch-site': site } = request.headers;
    if (origin !== undefined && !isSame(origin, host)) {
      return sendProblem(reply, 403, 'Forbidden', 'Pages of other origins have no business here.');
    }
    if (site !== undefined && site !== 'same-origin' && site !== 'none') {
      return sendProblem(reply, 403, 'Forbidden', 'Pages of other sites have no business here.');
    }
    if (listen.kind === 'unix' || holdsToken?.(request) === true) return undefined;
    if (holdsToken === undefined) return sendProblem(reply, 403, 'Forbidden', NO_TOKEN);
    reply.header('www-authenticate', 'Bearer realm="tidegate"');
    return sendProblem(reply, 401, 'Unauthorized', 'Send the admin token as Authorization: Bearer.');
  };
}

const NO_TOKEN =
  'Nothing can be changed without a token. Set admin.token in the configuration, to 16 characters or more: admin: {listen: "127.0.0.1:9901", token: …}.';

/** As `isOwn`, of one that may have come through a proxy that speaks TLS. */
function isSame(origin: string, host: string | undefined): boolean {
  const from = origin.toLowerCase().replace(/^https?:\/\//, '');
  return host !== undefined && from === host.toLowerCase() && from !== origin.toLowerCase();
}

/** Whether a page comes from here. Sandboxed pages and files say `null`. */
function isOwn(origin: string, host: string | undefined): boolean {
  return host !== undefined && origin.toLowerCase() === `http://${host.toLowerCase()}`;
}

export function pathOf(request: FastifyRequest): string {
  const query = request.url.indexOf('?');
  return query === -1 ? request.url : request.url.slice(0, query);
}

/** In constant time: hashes are of equal length, and tell nothing of how much of a guess was right. */
function createTokenCheck(token: string): (request: FastifyRequest) => boolean {
  const expected = sha256(token);
  return ({ headers }) => {
    const given = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
    return given !== undefined && timingSafeEqual(sha256(given), expected);
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Of a Host header: a name or an address, that of IPv6 in brackets, and perhaps a port. */
function namesLoopback(header: string): boolean {
  const [, ipv6, other = ''] = /^(?:\[([\da-f:.]+)\]|([^:[\]@/]+))(?::\d+)?$/i.exec(header) ?? [];
  return isLoopback({ kind: 'tcp', host: (ipv6 ?? other).toLowerCase(), port: 0 });
}
