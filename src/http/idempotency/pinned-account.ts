import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { parseKeyPlace } from '../../core/idempotency/key-place.ts';
import { UNKNOWN_ENDPOINT } from '../../core/idempotency/keyed-write.ts';
import { hashToNumber } from '../../core/quota/requester.ts';
import { ambiguousKeyOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import type { RoutedRequest } from '../request/routed-request.ts';

/**
 * The only account that a request may be sent with; undefined: any. The upstream knows an idempotency key for one account, so a keyed
 * write goes to the account that is recorded with its key, else to the one that the key itself determines: the same in all processes,
 * and after a restart without a record. So does a write with key headers that the upstream may read as a key. Without a key, the id of a
 * delivery determines the account of all its attempts.
 */
export function pinnedAccountOf(
  { request, route, client }: Pick<RoutedRequest, 'request' | 'route' | 'client'>,
  key: IdempotencyKey | undefined,
  claim: Pick<KeyClaim, 'endpoint'> | undefined,
): string | undefined {
  const { accounts } = route.target;
  if (accounts === undefined) return undefined;
  if (key !== undefined) {
    const place = claim?.endpoint;
    if (place === undefined || place === UNKNOWN_ENDPOINT) return rendezvous(accounts.names, key.value);
    return parseKeyPlace(place).account ?? NO_ACCOUNT;
  }
  const ambiguousKey = ambiguousKeyOf({ request, route });
  if (ambiguousKey !== undefined) return rendezvous(accounts.names, ambiguousKey);
  // Each attempt of a delivery is an exchange of its own, and does not know whether an earlier one may have taken effect.
  if (request.delivery !== undefined) return rendezvous(accounts.names, request.delivery);
  return route.stickyAccount === true ? rendezvous(accounts.names, client.hash) : undefined;
}

/** No account has this name: a write that was sent before its upstream had accounts is sent with none of them. */
const NO_ACCOUNT = '';

/** Rendezvous hashing: the name with the highest hash. Without one of the names, only the keys that had it get another. */
export function rendezvous(names: readonly string[], key: string): string | undefined {
  let best: string | undefined;
  let highest = -1;
  for (const name of names) {
    const score = hashToNumber(`${name}\0${key}`);
    if (score <= highest) continue;
    best = name;
    highest = score;
  }
  return best;
}
