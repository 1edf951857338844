import { IncomingMessage } from 'node:http';
import type { BodyListener, HttpServerRequest } from './server-request.ts';
import { hasBody, takeBuffered, withoutQuery } from './server-request.ts';

const SMALL_CHUNK = 512;
const GATHER_SIZE = 4096;

/**
 * A request over HTTP/1.1. Fastify sees each as `GET /`, so that its router, its body parsers and the destination check of
 * @fastify/http-proxy have nothing to refuse, parse or rewrite (fastify 5.12.8 responds 415 to a malformed Content-Type, 400
 * to QUERY, 404 to PURGE; @fastify/http-proxy 11.6.3 re-serialises the query). The original method and target are kept here.
 */
export class Http1ServerRequest extends IncomingMessage implements HttpServerRequest {
  verb = '';
  target = '';
  expectsContinue = false;
  /**
   * The last request of its connection. Either there was no room for it, or it asked for a change of protocol that was not
   * accepted. llhttp stops after such a request, and Node 24.21 drops the rest of
   * what it read with it (_http_server.js, onParserExecuteCommon). The start of the next request is then unknown, so nothing
   * that follows on the connection may be parsed as one.
   */
  endsConnection = false;
  bodyListener: BodyListener | undefined;

  /** Joins small chunks until there is enough, or the body is read. */
  #gatherBuffer: Buffer | undefined;
  #gatheredBytes = 0;

  /**
   * Joins small chunks of a body that is not being read. A Buffer costs some 200 B beside its bytes, so Node would keep 64 KiB of
   * single bytes in 14 MB of memory.
   */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!Buffer.isBuffer(chunk) || chunk.length >= SMALL_CHUNK || this.readableFlowing === true) {
      this.#flushGathered();
      return super.push(chunk, encoding);
    }
    if (this.#gatheredBytes + chunk.length > GATHER_SIZE) this.#flushGathered();
    this.#gatherBuffer ??= Buffer.allocUnsafeSlow(GATHER_SIZE);
    this.#gatheredBytes += chunk.copy(this.#gatherBuffer, this.#gatheredBytes);
    return this.readableLength + this.#gatheredBytes < this.readableHighWaterMark;
  }

  override resume(): this {
    this.#flushGathered();
    return super.resume();
  }

  #flushGathered(): void {
    if (this.#gatherBuffer === undefined) return;
    const gathered = this.#gatherBuffer.subarray(0, this.#gatheredBytes);
    this.#gatherBuffer = undefined;
    this.#gatheredBytes = 0;
    super.push(gathered);
  }

  /** Keeps method and target, and makes Fastify see `GET /`. */
  hideFromRouter(): void {
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

  takeArrivedBody(): Buffer | undefined {
    return this.complete ? takeBuffered(this) : undefined;
  }
}

/** Its connection is not being read, so a client that leaves goes unnoticed. */
export function isPaused(request: HttpServerRequest): boolean {
  return request instanceof Http1ServerRequest && request.socket.isPaused();
}
