import type { Millis } from '../../core/scalars.ts';
import { isNamedByKey } from '../../core/retry/choose-retry.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RequestBody } from '../request/request-body.ts';
import { factsOf, policyFor, type RoutedRequest } from '../request/routed-request.ts';
import { keyTtlOf, writeCredentialOf, writeNameOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import { KeyClaim } from './key-claim.ts';

const NO_BODY = new Uint8Array(0);

/** The claim of a write to its idempotency key, not begun yet. @param body as far as it has been read; undefined if not begun */
export function makeKeyClaim(
  { keys, clock }: Pick<ExchangeContext, 'keys' | 'clock'>,
  routed: RoutedRequest,
  key: IdempotencyKey | undefined,
  body: RequestBody | undefined,
): KeyClaim {
  const { request, route, client } = routed;
  const { name, idempotency, endpoints } = route.target;
  const policy = policyFor(routed).retry;
  const isPinned = endpoints.all.length > 1 && policy.sharesKeys !== true;
  const bytes = body?.whole ?? (request.hasBody ? undefined : NO_BODY);
  return new KeyClaim({
    keys,
    clock,
    schedule,
    identity: keys.identify(name, writeNameOf(routed, key?.value ?? ''), writeCredentialOf(routed), bytes),
    place: { fairnessKey: addressGroupOf(client), client: client.hash },
    concurrent: idempotency.concurrent,
    ttl: keyTtlOf(request, route),
    policy,
    mayUseOtherEndpoints: isPinned && !isNamedByKey({ ...factsOf(routed), keyed: true }),
  });
}

function schedule(delay: Millis, run: () => void): () => void {
  const timer = setTimeout(run, Math.ceil(delay));
  return () => clearTimeout(timer);
}
