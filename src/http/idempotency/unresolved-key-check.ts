/** Whether the write that a request asks for may have been done by others: asked where it is refused and has claimed nothing. */
import { isSafeMethod } from '../../core/exchange/attempt-outcome.ts';
import type { Arrival } from '../request/routed-request.ts';
import type { IdempotencyKey } from './idempotency-key.ts';
import { hasKeyInBody, keyAtArrival, keyInBody, nameWrite } from './idempotency-key.ts';
import type { Inbound } from '../server/server-request.ts';
import { findRepeated } from '../server/server-request.ts';
import type { KeyBook } from './idempotency-registry.ts';
import type { Router } from '../request/router.ts';
import { upstreamPath } from '../request/router.ts';

/** A key that may stand in a body which is not here yet may be any. */
export function isKeyOpen(
  keys: KeyBook,
  arrival: Pick<Arrival, 'request' | 'route'>,
  key: IdempotencyKey | undefined,
): boolean {
  const { request, route } = arrival;
  if (!keys.isAnyOpen(route.target.name)) return false;
  let named = key;
  if (key?.from !== 'body' && hasKeyInBody(request, route)) {
    const body = takeBody(request);
    if (body === undefined) return true;
    named = keyInBody(arrival, { payload: () => body }) ?? key;
  }
  if (named === undefined || named.from === 'minted') return false;
  if (findRepeated(request, route.target.idempotency.accountHeaders) !== undefined) return true; // of whichever account
  return keys.isOpen(keys.digest(nameWrite(arrival, named.value)));
}

/** The body, where all of it has come and nobody has read it; undefined where it has not. */
function takeBody(request: Inbound): Buffer | undefined {
  if (!request.complete || request.readableDidRead) return undefined;
  const bytes: unknown = request.read();
  return Buffer.isBuffer(bytes) ? bytes : undefined;
}

/** The same, of a request that never became an exchange. */
export function isOpenOnArrival(keys: KeyBook, request: Inbound, router: Pick<Router, 'find'>): boolean {
  if (!keys.isAnythingOpen || isSafeMethod(request.verb)) return false;
  const route = router.find(request.verb, request.headers.host, request.path);
  if (route === undefined) return false;
  if (route.tellNature?.(request.verb, upstreamPath(request.target, route)) === 'safe') return false;
  return isKeyOpen(keys, { request, route }, keyAtArrival(request, route));
}
