/** Whether an earlier request may have done the write that a rejected request repeats. */
import type { IdempotencyRegistry } from './idempotency-registry.ts';
import { possibleAccountsOf } from './key-account.ts';
import { keyFromHeaders, keyInBody, mayHaveKeyInBody, type RequestOnRoute, writeNameOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import type { KeyClaim } from './key-claim.ts';
import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import type { RequestBody } from '../request/request-body.ts';
import { isSafeRequest } from '../request/routed-request.ts';
import type { Router } from '../request/router.ts';
import { upstreamPath } from '../request/router.ts';
import { findRepeatedHeader } from '../request/validate-request.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/**
 * Whether an earlier request with this key has no known outcome. Also true if the key may be in a body that has not
 * arrived and any key of the upstream is unresolved.
 * @param isKeyFinal the body has been searched for a key, or is known to be too long for one
 */
export function isKeyUnresolved(
  keys: IdempotencyRegistry,
  routed: RequestOnRoute,
  key: IdempotencyKey | undefined,
  isKeyFinal: boolean,
): boolean {
  const { request, route } = routed;
  if (!keys.hasUnresolvedAt(route.target.name)) return false;
  let effectiveKey = key;
  if (!isKeyFinal && mayHaveKeyInBody(request, route)) {
    const body = request.takeArrivedBody();
    if (body === undefined) return true;
    effectiveKey = keyInBody(routed, { payload: () => body }) ?? key;
  }
  if (effectiveKey === undefined || effectiveKey.from === 'minted') return false;
  const { value } = effectiveKey;
  const isOpen = (account?: string): boolean => keys.isUnresolved(keys.digest(writeNameOf(routed, value, account)));
  const { account: sources, accountHeaders } = route.target.idempotency;
  if (findRepeatedHeader(request, accountHeaders) === undefined) return isOpen();
  const accounts = possibleAccountsOf(sources, request);
  return accounts === undefined || accounts.some((account) => isOpen(account));
}

/**
 * Whether an earlier request may have done the write, also if no key has been claimed yet.
 * @param body undefined if nothing has read it
 * @param claim undefined if none was made
 */
export function mayBeDoneByOthers(
  keys: IdempotencyRegistry,
  routed: RequestOnRoute,
  key: IdempotencyKey | undefined,
  body: RequestBody | undefined,
  claim: KeyClaim | undefined,
): boolean {
  if (claim?.hasWrite === true) return claim.lookUpKey()?.isAnswered === false;
  // A body that is kept has been searched for a key, and one that is too long has none.
  const isKeyFinal = body?.retention === 'whole' || body?.retention === 'too_long';
  return !isSafeRequest(routed) && isKeyUnresolved(keys, routed, key, isKeyFinal);
}

/** The same for a request that never became an exchange: finds its route and key first. */
export function isUnresolvedOnArrival(
  keys: IdempotencyRegistry,
  request: HttpServerRequest,
  router: Pick<Router, 'find'>,
): boolean {
  if (!keys.hasUnresolved || isSafeMethod(request.verb)) return false;
  const route = router.find(request.verb, request.headers.host, request.path);
  if (route === undefined) return false;
  if (route.replaySafetyOf?.(request.verb, upstreamPath(request.target, route)) === 'safe') return false;
  return isKeyUnresolved(keys, { request, route }, keyFromHeaders(request, route), false);
}
