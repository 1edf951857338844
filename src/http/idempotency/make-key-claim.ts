import { formatKeyPlace } from '../../core/idempotency/key-place.ts';
import { idOfName } from '../../core/idempotency/write-id.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RequestBody } from '../request/request-body.ts';
import { policyFor, type RoutedRequest } from '../request/routed-request.ts';
import { pinnedAccountOf } from './pinned-account.ts';
import { keyTtlOf, writeCredentialOf, writeNameOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import { repeatIdentityOf } from './repeat-identity.ts';
import { ReplayingKeyClaim } from './replaying-key-claim.ts';
import { upstreamKeyOf } from './upstream-key.ts';

const NO_BODY = new Uint8Array(0);

/**
 * The claim of a write to its idempotency key, not begun yet.
 * @param body as far as it has been read; undefined if not begun
 * @param record gets the id of the write
 */
export function makeKeyClaim(
  { keys, digests, responses }: Pick<ExchangeContext, 'keys' | 'digests' | 'responses'>,
  routed: RoutedRequest,
  key: IdempotencyKey | undefined,
  body: RequestBody | undefined,
  record: { writeId: string | undefined },
): KeyClaim {
  const { request, route, client } = routed;
  const { name, idempotency, endpoints } = route.target;
  const bytes = body?.whole ?? (request.hasBody ? undefined : NO_BODY);
  const identity = digests.identify(name, writeNameOf(routed, key?.value ?? ''), writeCredentialOf(routed), bytes);
  if (key !== undefined) record.writeId = idOfName(identity.name);
  const only = endpoints.all.length === 1 ? endpoints.all[0] : undefined;
  const isNew = key?.from === 'minted';
  const upstreamKey = upstreamKeyOf(routed, undefined, key);
  const claim = keys.makeClaim({
    identity,
    place: { fairnessKey: addressGroupOf(client), client: client.hash },
    concurrent: idempotency.concurrent,
    onStoreLost: idempotency.onStoreLost,
    ttl: keyTtlOf(request, route),
    endpoint:
      only && formatKeyPlace({ label: only.label, account: pinnedAccountOf(routed, key, undefined), upstreamKey }),
    isNew,
  });
  const { keepResponsesFor: lifetime } = idempotency;
  if (lifetime === undefined || responses === undefined || key === undefined) return claim;
  return new ReplayingKeyClaim({
    claim,
    responses,
    identity: repeatIdentityOf(digests, routed, identity.name, bytes),
    isNew,
    lifetime,
    notReady: policyFor(routed).poll?.notReady,
    pacingHeaders: route.target.throttle?.pacingHeaders,
  });
}
