import type { IncomingHttpHeaders } from 'node:http';
import { METHODS } from 'node:http';
import type { Readable } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';
import type { Problem } from '../response/problem.ts';

/** Handles an upload that cannot be read to its end. */
export interface BodyListener {
  onMalformed(problem: Problem): void;
}

/** A request of a client, over HTTP/1.1 or HTTP/2. The stream is its body: `end` means that the body is complete. */
export interface HttpServerRequest extends Readable {
  verb: string;
  /** As the client wrote it; for an absolute form, the part after our own host. `*`: OPTIONS for the server as a whole. */
  target: string;
  /** The client waits for `100 Continue` before it sends its body. */
  expectsContinue: boolean;
  readonly httpVersion: string;
  headers: IncomingHttpHeaders;
  /** Names and values in turn, Host among them. */
  rawHeaders: readonly string[];
  readonly hasBody: boolean;
  /** The whole request has arrived. */
  readonly complete: boolean;
  /** The target without its query. */
  readonly path: string;
  /** The same for all requests of a connection. */
  readonly socket: { readonly remoteAddress?: string | undefined };
  /** From the arrival of its head until the proxy gets it, because hooks of a host program ran, in milliseconds, ≥ 0. Absent: 0. */
  readonly handoverDelay?: Millis;
  /** Added to what is forwarded: names and values in turn, whatever the client sent by these names. */
  readonly addedHeaders?: readonly string[];
  /** The id of the delivery that this is an attempt of. Absent: a client sent it. */
  readonly delivery?: string;
  /** The key that the attempts of a delivery send in place of the client's: see `DeliveryMessage`. */
  readonly upstreamKey?: string | undefined;
  /** Over HTTP/1.1: notified when the rest of the body cannot be parsed. */
  bodyListener: BodyListener | undefined;
  /** Reads the whole body at once. Undefined if a part of it has not arrived, or something has read it. */
  takeArrivedBody(): Buffer | undefined;
}

const EMPTY = Buffer.alloc(0);

/** Reads what has arrived of a body that nothing reads. @param source whose buffer contains it; ended, and not read to its end */
export function takeBuffered(source: Readable): Buffer | undefined {
  if (source.destroyed || source.readableDidRead) return undefined;
  const bytes: unknown = source.read();
  return Buffer.isBuffer(bytes) ? bytes : EMPTY;
}

/** Whether a request over HTTP/1.1 has a body. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

export function withoutQuery(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** Part of the body has not arrived yet. */
export function isBodyPending(request: HttpServerRequest): boolean {
  return request.hasBody && !request.complete;
}

/** The methods that Node's HTTP/1.1 parser knows; over HTTP/2 no others are accepted either. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
