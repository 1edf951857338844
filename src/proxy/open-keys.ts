/** Whether the write that a request asks for may have been done by others: asked where it is refused and has claimed nothing. */
import { isSafeMethod } from '../policy/types.ts';
import type { Arrival } from './arrival.ts';
import type { IdempotencyKey } from './idempotency.ts';
import { hasKeyInBody, keyAtArrival, nameWrite } from './idempotency.ts';
import type { Inbound } from './inbound.ts';
import type { KeyBook } from './key-book.ts';
import type { Router } from './router.ts';
import { upstreamPath } from './router.ts';

/** A key that may stand in a body which is not known may be any. */
export function isKeyOpen(
  keys: KeyBook,
  arrival: Pick<Arrival, 'request' | 'route'>,
  key: IdempotencyKey | undefined,
): boolean {
  const { request, route } = arrival;
  if (!keys.isAnyOpen(route.target.name)) return false;
  if (key?.from !== 'body' && hasKeyInBody(request, route)) return true;
  if (key === undefined || key.from === 'minted') return false;
  return keys.isOpen(keys.digest(nameWrite(arrival, key.value)));
}

/** The same, of a request that never became an exchange. */
export function isOpenOnArrival(keys: KeyBook, request: Inbound, router: Pick<Router, 'find'>): boolean {
  if (!keys.isAnythingOpen || isSafeMethod(request.verb)) return false;
  const route = router.find(request.verb, request.headers.host, request.path);
  if (route === undefined) return false;
  if (route.tellNature?.(request.verb, upstreamPath(request.target, route)) === 'safe') return false;
  return isKeyOpen(keys, { request, route }, keyAtArrival(request, route));
}
