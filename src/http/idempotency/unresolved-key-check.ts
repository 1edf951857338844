/** Whether an earlier request may have done the write that a rejected request repeats. */
import type { IdempotencyRegistry } from './idempotency-registry.ts';
import { keyFromHeaders, keyInBody, mayHaveKeyInBody, type RequestOnRoute, writeNameOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import type { KeyClaim } from './key-claim.ts';
import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import { isSafeRequest } from '../request/routed-request.ts';
import type { Router } from '../request/router.ts';
import { upstreamPath } from '../request/router.ts';
import { findRepeatedHeader } from '../request/validate-request.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/**
 * Whether an earlier request with this key has no known outcome. Also true if the key may be in a body that has not
 * arrived and any key of the upstream is unresolved.
 * @param key as far as the headers say
 */
export function isKeyUnresolved(
  keys: IdempotencyRegistry,
  routed: RequestOnRoute,
  key: IdempotencyKey | undefined,
): boolean {
  const { request, route } = routed;
  if (!keys.hasUnresolvedAt(route.target.name)) return false;
  let effectiveKey = key;
  if (key?.from !== 'body' && mayHaveKeyInBody(request, route)) {
    const body = takeCompleteBody(request);
    if (body === undefined) return true;
    effectiveKey = keyInBody(routed, { payload: () => body }) ?? key;
  }
  if (effectiveKey === undefined || effectiveKey.from === 'minted') return false;
  if (findRepeatedHeader(request, route.target.idempotency.accountHeaders) !== undefined) return true; // any account
  return keys.isUnresolved(keys.digest(writeNameOf(routed, effectiveKey.value)));
}

/**
 * Whether an earlier request may have done the write, also if no key has been claimed yet.
 * @param claim undefined if none was made
 */
export function mayBeDoneByOthers(
  keys: IdempotencyRegistry,
  routed: RequestOnRoute,
  key: IdempotencyKey | undefined,
  claim: KeyClaim | undefined,
): boolean {
  if (claim?.hasWrite === true) return claim.lookUpKey()?.isAnswered === false;
  return !isSafeRequest(routed) && isKeyUnresolved(keys, routed, key);
}

/** The body, if all of it has arrived and nothing has read it. */
function takeCompleteBody(request: HttpServerRequest): Buffer | undefined {
  if (!request.complete || request.readableDidRead) return undefined;
  const bytes: unknown = request.read();
  return Buffer.isBuffer(bytes) ? bytes : undefined;
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
  return isKeyUnresolved(keys, { request, route }, keyFromHeaders(request, route));
}
