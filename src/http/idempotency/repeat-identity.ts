import type { RequestBody } from '../request/request-body.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { keyAccountOf } from './key-account.ts';
import { writeCredentialOf, writeNameOf } from './idempotency-key.ts';
import type { IdempotencyKey } from './idempotency-types.ts';
import type { RepeatIdentity } from './replaying-key-claim.ts';
import type { WriteDigests } from './write-digests.ts';

/** Headers that authenticate clients, besides those that the configuration names. */
const CREDENTIAL_HEADERS = ['authorization', 'cookie', 'x-api-key', 'api-key', 'x-auth-token'] as const;

const NO_BODY = Buffer.alloc(0);

/** @param body undefined if nothing has read it */
export function repeatIdentityOf(
  digests: WriteDigests,
  routed: RoutedRequest,
  key: IdempotencyKey,
  body: RequestBody | undefined,
): RepeatIdentity {
  const { request, route } = routed;
  const { kind, header, value } = writeCredentialOf(routed);
  const credentials = CREDENTIAL_HEADERS.map((name) => String(request.headers[name] ?? ''));
  const account = keyAccountOf(route.target.idempotency.account, request);
  const client = [kind, header, value, ...credentials].join('\0');
  const bytes = body === undefined && !request.hasBody ? NO_BODY : body?.whole;
  const { target } = request;
  const query = target.includes('?') ? target.slice(target.indexOf('?')) : '';
  return {
    id: digests.responseId(writeNameOf(routed, key.value, account).name, client),
    fingerprint: bytes && digests.fingerprint(query, bytes),
    acceptEncoding: request.headers['accept-encoding'] ?? '',
  };
}
