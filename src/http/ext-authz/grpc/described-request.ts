import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { parseListField } from '../../../core/http-semantics/list-field.ts';
import { joinHeaders } from '../../headers/join-headers.ts';
import type { BodyListener, HttpServerRequest } from '../../server/server-request.ts';
import { withoutQuery } from '../../server/server-request.ts';
import { normalizeTarget } from '../check-router.ts';

/** What a message says about a request. */
export interface RequestDescription {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly host: string;
  /** Names and values in turn, without Host. */
  readonly headers: readonly string[];
  /** The address of the client, as the sender of the check knows it; undefined: not known. */
  readonly address: string | undefined;
}

/** Headers of a body, and of the connection: a described request has neither. */
const FRAMING: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'expect',
  'connection',
  'upgrade',
]);

const EMPTY = Buffer.alloc(0);

/** A request that a message describes. It has no body here, because the sender of the message sends the request itself. */
export class DescribedRequest extends Readable implements HttpServerRequest {
  verb: string;
  target: string;
  expectsContinue = false;
  readonly httpVersion = '2.0';
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];
  readonly hasBody = false;
  readonly complete = true;
  readonly socket: HttpServerRequest['socket'];
  bodyListener: BodyListener | undefined;

  /** @param peer the address of the sender of the message; undefined: it uses a Unix socket */
  constructor({ method, target, host, headers, address }: RequestDescription, peer: string | undefined) {
    super();
    this.verb = method;
    this.target = normalizeTarget(target);
    const own = withoutFraming(headers);
    const joined = joinHeaders(own);
    const forwarded = joined['x-forwarded-for'];
    const hops = forwarded === undefined ? [] : parseListField(String(forwarded));
    // Envoy adds the address itself if it is the first proxy.
    if (address !== undefined && hops.at(-1) !== address) own.push('x-forwarded-for', address);
    this.rawHeaders = ['host', host, ...own];
    this.headers = joinHeaders(this.rawHeaders);
    this.socket = { remoteAddress: peer };
    this.push(null);
  }

  get path(): string {
    return withoutQuery(this.target);
  }

  takeArrivedBody(): Buffer {
    return EMPTY;
  }

  override _read(): void {}
}

/** Pseudo-headers are described elsewhere in a message. */
function withoutFraming(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] ?? '').toLowerCase();
    if (!name.startsWith(':') && !FRAMING.has(name)) kept.push(name, headers[i + 1] ?? '');
  }
  return kept;
}
