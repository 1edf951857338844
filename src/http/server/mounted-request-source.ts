import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Entrance, Reception } from './request-source.ts';
import { OTHER_VERSION } from './server-request.ts';
import { MountedInbound } from './mounted-request.ts';
import { fault } from '../response/problem-details.ts';

/** Requests that a server of somebody else's hands over. Its connections are its own. */
export class Mount implements Entrance {
  readonly bounds = [];
  readonly waiting = 0;
  #reception: Reception | undefined;

  open(reception: Reception): Promise<string> {
    this.#reception = reception;
    return Promise.resolve('');
  }

  /**
   * Answers a request; nothing else may write to its response from here on, nor read its body.
   * @param prefix of its path, which is not for the proxy: '' or such as `/payments`, without a slash at its end
   * @throws when it is not open
   */
  take(message: IncomingMessage, response: ServerResponse, prefix: string): void {
    if (this.#reception === undefined) throw new Error('a request before the proxy was ready');
    const { refusals } = this.#reception;
    // A request for an upgrade that is not taken is served without it. Where the next request begins is unknown (server-request.ts).
    if (message.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const { url = '', httpVersion } = message;
    const local = withoutPrefix(url, prefix);
    const request = new MountedInbound(message, local ?? url);
    if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusals.refuse(request, response, OTHER_VERSION, true);
    if (local === undefined) return refusals.refuse(request, response, ELSEWHERE);
    if (refusals.turnAway(request, response, this.#reception.full() ?? this.#reception.shed())) return;
    this.#reception.handle(request, response);
  }

  /** Who listens takes no more; each answer ends its connection: client-response.ts. */
  drain(): void {}

  settle(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const ELSEWHERE = fault(404, 'Not found', 'No route leads there.', 'no_route');

/**
 * To the byte. Undefined for a target that has the prefix in other letters, encoded say: routers see through it, and whoever
 * looks at what is sent on may not.
 */
function withoutPrefix(target: string, prefix: string): string | undefined {
  if (prefix === '') return target;
  const [, origin = '', rest = target] = /^(https?:\/\/[^/?#]*)(.*)$/is.exec(target) ?? [];
  if (!rest.startsWith(prefix)) return undefined;
  const local = rest.slice(prefix.length);
  if (local === '' || local.startsWith('?')) return `${origin}/${local}`;
  return local.startsWith('/') ? origin + local : undefined;
}
