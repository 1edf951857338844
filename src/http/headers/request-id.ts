import type { HttpServerRequest } from '../server/server-request.ts';

/** An id that may go into headers and logs: 1 to 128 visible ASCII characters. */
const USABLE_ID = /^[\x21-\x7e]{1,128}$/;

/** The X-Request-Id of a request: the client's if it is usable, otherwise ours. */
export function xRequestIdFor(request: Pick<HttpServerRequest, 'headers'>, ownId: string): string {
  return clientRequestIdOf(request) ?? ownId;
}

/** The client's own X-Request-Id; undefined if it sent none that is usable. */
export function clientRequestIdOf({ headers }: Pick<HttpServerRequest, 'headers'>): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && USABLE_ID.test(id) ? id : undefined;
}
