import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Millis } from '../../core/scalars.ts';
import type { RequestSource, RequestSink } from './request-source.ts';
import { UNSUPPORTED_VERSION } from '../request/validate-request.ts';
import { MountedRequest } from './mounted-request.ts';
import { MountedConnection } from './mounted-connection.ts';
import { NO_ROUTE_PROBLEM } from '../response/problem-details.ts';

/** Requests that the host program's server hands over. The server keeps its connections. */
export class MountedRequestSource implements RequestSource {
  readonly bounds = [];
  readonly startingCount = 0;
  #sink: RequestSink | undefined;

  open(sink: RequestSink): Promise<string> {
    this.#sink = sink;
    return Promise.resolve('');
  }

  /**
   * Handles a request. From here on nothing else may write its response or read its body.
   * @param prefix that is removed from the path: '' or such as `/payments`, without a slash at its end
   * @param handoverDelay since the arrival of its head
   * @throws if the source is not open
   */
  handle(message: IncomingMessage, response: ServerResponse, prefix: string, handoverDelay: Millis): void {
    if (this.#sink === undefined) throw new Error('a request arrived before the proxy was ready');
    const connection = MountedConnection.of(message.socket);
    // The client left, or the program responded, while the program's own hooks ran: the events that would report it are past.
    if (connection.isOver(response)) return void message.resume();
    const { rejections } = this.#sink;
    // Upgrades are ignored here. The start of the next request is then unknown: see `Http1ServerRequest.endsConnection`.
    if (message.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const { url = '', httpVersion } = message;
    const localTarget = withoutPrefix(url, prefix);
    const request = new MountedRequest(message, localTarget ?? url, handoverDelay);
    connection.add(request, response);
    // Timeouts of hooks would write a response. Without their listeners Node closes the connection.
    message.removeAllListeners('timeout');
    response.removeAllListeners('timeout');
    if (connection.problem !== undefined) return rejections.reject(request, response, connection.problem, true);
    if (httpVersion !== '1.1' && httpVersion !== '1.0') {
      return rejections.reject(request, response, UNSUPPORTED_VERSION, true);
    }
    if (localTarget === undefined) return rejections.reject(request, response, NO_ROUTE_PROBLEM);
    const problem = this.#sink.problemIfFull(request) ?? this.#sink.problemIfOverloaded(request);
    if (rejections.rejectIf(request, response, problem)) return;
    this.#sink.handle(request, response);
  }

  /** The host program stops listening; each response closes its connection: see client-response.ts. */
  drain(): void {}

  flush(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/**
 * The target without the prefix, otherwise unchanged. Undefined if the prefix is written differently, percent-encoded for example:
 * the host program's router decodes it, and the upstream's may not.
 */
function withoutPrefix(target: string, prefix: string): string | undefined {
  if (prefix === '') return target;
  const [, origin = '', rest = target] = /^(https?:\/\/[^/?#]*)(.*)$/is.exec(target) ?? [];
  if (!rest.startsWith(prefix)) return undefined;
  const local = rest.slice(prefix.length);
  if (local === '' || local.startsWith('?')) return `${origin}/${local}`;
  return local.startsWith('/') ? origin + local : undefined;
}
