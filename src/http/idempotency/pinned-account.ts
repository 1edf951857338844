import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { hashToNumber } from '../../core/quota/requester.ts';
import { accountOfPlace } from './key-place.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import type { RoutedRequest } from '../request/routed-request.ts';

/**
 * The only account that a request may be sent with; undefined: any. The upstream knows an idempotency key for one account, so a keyed
 * write goes to the account that is recorded with its key, else to the one that the key itself determines: the same in all processes,
 * and after a restart without a record.
 */
export function pinnedAccountOf(
  { route, client }: Pick<RoutedRequest, 'route' | 'client'>,
  key: IdempotencyKey | undefined,
  claim: Pick<KeyClaim, 'endpoint'> | undefined,
): string | undefined {
  const { accounts } = route.target;
  if (accounts === undefined) return undefined;
  if (key !== undefined) {
    const place = claim?.endpoint;
    return (place === undefined ? undefined : accountOfPlace(place)) ?? rendezvous(accounts.names, key.value);
  }
  return route.stickyAccount === true ? rendezvous(accounts.names, client.hash) : undefined;
}

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
