import type { IncomingHttpHeaders } from 'node:http';
import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

/** A request as it came in, over HTTP/1.1 or HTTP/2. As a stream it is the body: `end` means that all of it has come. */
export interface Inbound extends Readable {
  readonly verb: string;
  /** As the client wrote it; of an absolute form for our own host, what follows the host. */
  target: string;
  /** The client waits for a 100 before it sends its body. */
  expectsContinue: boolean;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, Host among them. */
  readonly rawHeaders: readonly string[];
  readonly hasBody: boolean;
  /** All of it has come. */
  readonly complete: boolean;
  /** The target without its query. */
  readonly path: string;
  /** Of all requests of a connection the same. */
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/**
 * One over HTTP/1.1. Fastify is shown a plain `GET /` without a content type: its router, its body parsers and the
 * destination check of @fastify/http-proxy then have nothing to refuse, to parse or to rewrite (fastify 5.12.8: a
 * malformed Content-Type is a 415, QUERY a 400, PURGE a 404; @fastify/http-proxy 11.6.3 re-serialises the query).
 * What was really asked for is kept here, to the byte.
 */
export class Http1Inbound extends IncomingMessage implements Inbound {
  verb = '';
  target = '';
  expectsContinue = false;

  /** Keeps the originals, and shows Fastify the mask. */
  mask(): void {
    this.verb = this.method ?? '';
    this.target = this.url ?? '';
    this.method = 'GET';
    this.url = '/';
  }

  get hasBody(): boolean {
    const length = this.headers['content-length'];
    return this.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  }

  get path(): string {
    return withoutQuery(this.target);
  }
}

export function withoutQuery(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** Why a request is not fit to be forwarded; undefined when it is. An absolute-form target for our own host is rewritten. */
export function findFault(request: Inbound): string | undefined {
  let hosts = 0;
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    if (request.rawHeaders[i]?.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) return 'more than one Host';
  if (hosts === 0 && request.httpVersion !== '1.0') return 'no Host';
  const { headers } = request;
  // llhttp refuses these already; smuggling is worth refusing twice.
  if (headers['content-length'] !== undefined && headers['transfer-encoding'] !== undefined) {
    return 'Content-Length together with Transfer-Encoding';
  }
  // RFC 9112 §6.1: HTTP/1.0 knows no chunks, and who passed it on may have read another end into it.
  if (headers['transfer-encoding'] !== undefined && request.httpVersion === '1.0') return 'chunks in HTTP/1.0';
  // Only chunks are undone here: what another coding has wrapped would go on without a label (RFC 9112 §6.1).
  const coding = headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  if (coding !== 'chunked') return 'a transfer coding other than chunked';
  return findTargetFault(request);
}

function findTargetFault(request: Inbound): string | undefined {
  if (!request.target.startsWith('/')) {
    // `OPTIONS *` asks about this server, not about a resource behind it (RFC 9110 §9.3.7); undici 8 cannot send it on.
    const local = stripOwnOrigin(request.target, request.headers.host);
    if (local === undefined) return 'a target for another host';
    request.target = local;
  }
  const { path } = request;
  if (path.startsWith('//')) return 'a path that starts with two slashes';
  if (path.includes('\\') || /%5c/i.test(path)) return 'a backslash in the path';
  if (DOT_SEGMENT.test(path)) return 'a dot segment in the path';
  if (request.target.includes('#')) return 'a fragment in the target';
  return undefined;
}

/** `.` and `..`, however their dots and the slashes around them are encoded. */
const DOT_SEGMENT = /(?:\/|%2f)(?:\.|%2e){1,2}(?=\/|%2f|;|$)/i;

/** RFC 9112 §3.2.2: a proxy must take the absolute form. Ours alone: this is no forward proxy. */
function stripOwnOrigin(target: string, host: string | undefined): string | undefined {
  const match = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target);
  if (match === null || match[1]?.toLowerCase() !== host?.toLowerCase()) return undefined;
  const rest = match[2] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}
