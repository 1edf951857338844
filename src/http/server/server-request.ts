import type { IncomingHttpHeaders } from 'node:http';
import { IncomingMessage, METHODS } from 'node:http';
import type { Readable } from 'node:stream';
import type { Problem } from '../response/problem-details.ts';
import { fault } from '../response/problem-details.ts';
import { MALFORMED } from './parse-error-problem.ts';
import { findTargetFault, isHost } from '../request/request-target.ts';

/** A request as it came in, over HTTP/1.1 or HTTP/2. As a stream it is the body: `end` means that all of it has come. */
export interface Inbound extends Readable {
  verb: string;
  /** As the client wrote it; of an absolute form for our own host, what follows the host. `*` of OPTIONS for a server as a whole. */
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

const CRUMB = 512;
const SLAB = 4096;

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
  /**
   * It offered a change of protocol that is not taken. llhttp stops behind such a request, and Node 24.21 drops the rest
   * of what was read with it (_http_server.js, onParserExecuteCommon): where the next one begins is not known any more,
   * and nothing that follows on its connection may be taken for a request.
   */
  isLast = false;
  /** Told when the rest of its body cannot be read. */
  owner: { onMalformed(problem: Problem): void } | undefined;

  /** What came in pieces too small to be kept each for itself, until it is enough or somebody reads. */
  #slab: Buffer | undefined;
  #gathered = 0;

  /**
   * A body that nobody reads at present may come in crumbs, and a Buffer costs some 200 B beside its bytes: Node would
   * keep 64 KiB of body in 14 MB of memory. So they are gathered.
   */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!Buffer.isBuffer(chunk) || chunk.length >= CRUMB || this.readableFlowing === true) {
      this.#flush();
      return super.push(chunk, encoding);
    }
    if (this.#gathered + chunk.length > SLAB) this.#flush();
    this.#slab ??= Buffer.allocUnsafeSlow(SLAB);
    this.#gathered += chunk.copy(this.#slab, this.#gathered);
    return this.readableLength + this.#gathered < this.readableHighWaterMark;
  }

  override resume(): this {
    this.#flush();
    return super.resume();
  }

  #flush(): void {
    if (this.#slab === undefined) return;
    const gathered = this.#slab.subarray(0, this.#gathered);
    this.#slab = undefined;
    this.#gathered = 0;
    super.push(gathered);
  }

  /** Keeps the originals, and shows Fastify the mask. */
  mask(): void {
    this.verb = this.method ?? '';
    this.target = this.url ?? '';
    this.method = 'GET';
    this.url = '/';
  }

  get hasBody(): boolean {
    return hasBody(this.headers);
  }

  get path(): string {
    return withoutQuery(this.target);
  }
}

/** Of a request over HTTP/1.1. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

export function withoutQuery(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** Nothing is read of its connection at present: nobody would notice if its client went away. */
export function isUnread(request: Inbound): boolean {
  return request instanceof Http1Inbound && request.socket.isPaused();
}

/** Some of its body is still to come. */
export function isComing(request: Inbound): boolean {
  return request.hasBody && !request.complete;
}

export interface Fault {
  readonly problem: Problem;
  /** Where the request ends is in doubt, and so is whatever follows it on its connection. */
  readonly isUnframed: boolean;
}

/** Why a request is not fit to be forwarded; undefined when it is. An absolute-form target for our own host is rewritten. */
export function findFault(request: Inbound): Fault | undefined {
  if (isOtherProtocol(request)) return { problem: MALFORMED, isUnframed: true };
  if (!speaksOurs(request)) return { problem: OTHER_VERSION, isUnframed: true };
  if (request.rawHeaders.length > 2 * MAX_HEADERS) return { problem: TOO_MANY_HEADERS, isUnframed: false };
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > Number.MAX_SAFE_INTEGER) return { problem: TOO_LONG, isUnframed: false };
  const unframed = findHostFault(request) ?? findFramingFault(request);
  const found = unframed ?? findTargetFault(request);
  if (found === undefined) return undefined;
  const problem = fault(400, 'Bad request', `The request has ${found}.`, 'bad_request');
  return { problem, isUnframed: unframed !== undefined };
}

/** llhttp takes 0.9 and 2.0 from a request line; the real HTTP/2 comes another way. */
function speaksOurs(request: Inbound): boolean {
  const { httpVersion } = request;
  return httpVersion === '1.1' || httpVersion === '1.0' || !(request instanceof Http1Inbound);
}

/** What the parser of HTTP/1.1 knows: over HTTP/2 the same. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/**
 * llhttp reads RTSP/1.0 and ICE/1.0 too, and tells nobody. RTSP has methods of its own; ICE has SOURCE alone, which
 * HTTP/1.0 has not. A GET, POST or OPTIONS of RTSP cannot be told from one of HTTP, and is taken for it.
 */
function isOtherProtocol(request: Inbound): boolean {
  if (!(request instanceof Http1Inbound)) return false;
  return !KNOWN_METHODS.has(request.verb) || (request.verb === 'SOURCE' && request.httpVersion !== '1.1');
}

export const OTHER_VERSION = fault(
  505,
  'Version not supported',
  'This is neither HTTP/1.1 nor HTTP/1.0, and HTTP/2 is agreed on otherwise.',
  'http_version',
);

/** More than twice what other servers take (Envoy and Apache: 100). */
const MAX_HEADERS = 256;
const TOO_MANY_HEADERS = fault(
  431,
  'Headers too large',
  `The request has more than ${MAX_HEADERS} headers.`,
  'headers_too_large',
);
/** Beyond it numbers are not exact, and undici 8 would announce another length than the client's. */
const TOO_LONG = fault(413, 'Content too large', 'No body is as long as this Content-Length says.', 'body_too_large');

/** One of these names that more than one header has; undefined when there is none. @param names in lower case */
export function findRepeated({ rawHeaders }: Inbound, names: ReadonlySet<string>): string | undefined {
  for (const name of names) if (countOf(rawHeaders, name) > 1) return name;
  return undefined;
}

function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] ?? '';
    if (each.length === name.length && each.toLowerCase() === name) count += 1;
  }
  return count;
}

function findHostFault({ rawHeaders, headers, httpVersion }: Inbound): string | undefined {
  const hosts = countOf(rawHeaders, 'host');
  if (hosts > 1) return 'more than one Host';
  if (hosts === 0 && httpVersion !== '1.0') return 'no Host';
  return isHost(headers.host ?? '') ? undefined : 'a Host that is none';
}

function findFramingFault({ headers, httpVersion }: Inbound): string | undefined {
  // To those who read names as CGI does, these are the real ones.
  if (headers['transfer_encoding'] !== undefined || headers['content_length'] !== undefined) {
    return 'an underscore where a hyphen belongs';
  }
  // llhttp refuses these already; smuggling is worth refusing twice.
  if (headers['content-length'] !== undefined && headers['transfer-encoding'] !== undefined) {
    return 'Content-Length together with Transfer-Encoding';
  }
  // RFC 9112 §6.1: HTTP/1.0 knows no chunks, and who passed it on may have read another end into it.
  if (headers['transfer-encoding'] !== undefined && httpVersion === '1.0') return 'chunks in HTTP/1.0';
  // Only chunks are undone here: what another coding has wrapped would go on without a label (RFC 9112 §6.1).
  const coding = headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  return coding === 'chunked' ? undefined : 'a transfer coding other than chunked';
}
