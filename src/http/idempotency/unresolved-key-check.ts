/** Whether an earlier request may have done the write that a rejected request repeats. */
import { isUnconfirmed } from '../../core/idempotency/key-record.ts';
import type { OwnerDigests } from '../../core/idempotency/keyed-write.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RequestBody } from '../request/request-body.ts';
import { isSafeRequest, type RoutedRequest } from '../request/routed-request.ts';
import type { Router } from '../request/router.ts';
import { upstreamPath } from '../request/router.ts';
import { findRepeatedHeader } from '../request/validate-request.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import {
  keyFromHeaders,
  keyInBody,
  mayHaveKeyInBody,
  type RequestOnRoute,
  writeCredentialOf,
  writeNameOf,
} from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import { possibleAccountsOf } from './key-account.ts';

type Keys = Pick<ExchangeContext, 'keys' | 'digests'>;

/**
 * Finds out whether an earlier request with this key has no known outcome. Also true if the key may be in a body that has not
 * arrived and any key of the upstream is unresolved.
 * @param isKeyFinal the body has been searched for a key, or is known to be too long for one
 * @param by the client, if it is known: writes of other clients with keys of their own do not count
 */
function findUnresolved(
  { keys, digests }: Keys,
  routed: RequestOnRoute,
  key: IdempotencyKey | undefined,
  isKeyFinal: boolean,
  onFound: (isUnresolved: boolean) => void,
  by?: OwnerDigests,
): void {
  const { request, route } = routed;
  const { name, idempotency } = route.target;
  if (!keys.mayHaveUnresolved(name)) return onFound(false);
  let effectiveKey = key;
  if (!isKeyFinal && mayHaveKeyInBody(request, route)) {
    const body = request.takeArrivedBody();
    if (body === undefined) return keys.findUnresolved(name, undefined, onFound);
    effectiveKey = keyInBody(routed, { payload: () => body }) ?? key;
  }
  if (effectiveKey === undefined || effectiveKey.from === 'minted') return onFound(false);
  const { value } = effectiveKey;
  const { account: sources, accountHeaders } = idempotency;
  const isAccountClear = findRepeatedHeader(request, accountHeaders) === undefined;
  const accounts = isAccountClear ? [undefined] : possibleAccountsOf(sources, request);
  if (accounts === undefined) return keys.findUnresolved(name, undefined, onFound);
  const names = accounts.map((account) => digests.digest(writeNameOf(routed, value, account)));
  keys.findUnresolved(name, names, onFound, by);
}

/**
 * Finds out whether an earlier request may have done the write, also if no key has been claimed yet.
 * @param body undefined if nothing has read it
 * @param claim undefined if none was made
 */
export function findUnresolvedByOthers(
  context: Keys,
  routed: RoutedRequest,
  key: IdempotencyKey | undefined,
  body: RequestBody | undefined,
  claim: KeyClaim | undefined,
  onFound: (mayHaveTakenEffect: boolean) => void,
): void {
  if (claim?.hasWrite === true) return claim.lookUp((record) => onFound(isUnconfirmed(record)));
  if (isSafeRequest(routed) || (claim === undefined && isUnverified(routed))) return onFound(false);
  // A body that is kept has been searched for a key, and one that is too long has none.
  const isKeyFinal = body?.retention === 'whole' || body?.retention === 'too_long';
  const by = context.digests.identifyOwner(writeCredentialOf(routed).keyOwner);
  findUnresolved(context, routed, key, isKeyFinal, onFound, by);
}

/** Before its key is claimed, the signature may not have been verified: an unknown sender learns nothing of a key. */
function isUnverified({ route }: Pick<RequestOnRoute, 'route'>): boolean {
  return route.verify !== undefined;
}

/** The same for a request that never became an exchange: finds its route and key first. */
export function findUnresolvedOnArrival(
  context: Keys,
  request: HttpServerRequest,
  router: Pick<Router, 'find'>,
  onFound: (isUnresolved: boolean) => void,
): void {
  if (!context.keys.mayHaveUnresolved() || isSafeMethod(request.verb)) return onFound(false);
  const route = router.find(request.verb, request.headers.host, request.path);
  if (route === undefined || isUnverified({ route })) return onFound(false);
  if (route.replaySafetyOf?.(request.verb, upstreamPath(request.target, route)) === 'safe') return onFound(false);
  findUnresolved(context, { request, route }, keyFromHeaders(request, route), false, onFound);
}
