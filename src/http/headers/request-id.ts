import type { HttpServerRequest } from '../server/server-request.ts';

/** An id that may go into headers and logs: 1 to 128 visible ASCII characters. */
const USABLE_ID = /^[\x21-\x7e]{1,128}$/;

/** The X-Request-Id of a request: the client's if it is usable, otherwise ours. */
export function xRequestIdFor({ headers }: Pick<HttpServerRequest, 'headers'>, ownId: string): string {
  const id = headers['x-request-id'];
  return typeof id === 'string' && USABLE_ID.test(id) ? id : ownId;
}
