import type { AuthRejection } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import { requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import type { CredentialCheck } from './auth-types.ts';

/** For the developer of the client. They do not say which clients or keys exist. */
const TEXTS: Readonly<Record<Exclude<AuthRejection, 'keys_unavailable' | 'not_allowed'>, string>> = {
  missing: 'The request has no credential. Send the one that the operator of this proxy has issued.',
  malformed: 'The credential is not in the expected form.',
  unknown_key: 'The credential is not valid: its key is unknown, or was removed.',
  bad_signature: 'The signature of the token is not valid.',
  wrong_algorithm: 'The token is signed with an algorithm that is not accepted.',
  expired: 'The credential has expired. Request a new one.',
  not_yet_valid: 'The token is not valid yet. Check the clock.',
  wrong_issuer: 'The token is from another issuer.',
  wrong_audience: 'The token is for another audience.',
  no_name: 'The credential contains no client name, or one that cannot be used.',
  untrusted_certificate: 'The client certificate was not issued by a trusted authority, or is not valid.',
};

/** The `Retry-After` while the keys of the issuer are not known. */
const KEYS_RETRY_AFTER: Millis = 5000;

const KEYS_UNAVAILABLE: Problem = {
  ...requestProblem(
    503,
    'Authentication unavailable',
    'The keys of the issuer cannot be fetched, so the token cannot be verified. Nothing was sent. Repeat the request.',
    'auth_unavailable',
  ),
  proxyError: 'proxy_internal_error',
  retryAfterMs: KEYS_RETRY_AFTER,
  cause: 'keys_unavailable',
};

const NOT_ALLOWED: Problem = {
  ...requestProblem(
    403,
    'Forbidden',
    'This client may not use this route, or may not use this method on it. Nothing was sent.',
    'not_allowed',
  ),
  proxyError: 'http_request_denied',
  cause: 'not_allowed',
};

/** @param challenge the value of WWW-Authenticate */
export function authProblem(why: AuthRejection, challenge: string): Problem {
  if (why === 'keys_unavailable') return KEYS_UNAVAILABLE;
  if (why === 'not_allowed') return NOT_ALLOWED;
  return {
    ...requestProblem(401, 'Unauthorized', TEXTS[why], 'unauthenticated'),
    proxyError: 'http_request_denied',
    challenge,
    cause: why,
  };
}

/**
 * A challenge for each header that may have a credential (RFC 9110 §11.6.1, RFC 6750 §3).
 * @param takesCertificate a client certificate is a credential too
 */
export function challengeFor(
  checks: readonly Pick<CredentialCheck, 'header'>[],
  takesCertificate: boolean,
  why: AuthRejection,
): string {
  const error = why === 'missing' ? '' : ', error="invalid_token"';
  const headers = new Set(checks.map(({ header }) => header));
  // No registered scheme is for a key in a header of its own, so that header is named.
  const challenges = [...headers].map((header) =>
    header === 'authorization' ? `Bearer realm="tidegate"${error}` : `ApiKey realm="tidegate", header="${header}"`,
  );
  if (takesCertificate) challenges.push('ClientCertificate realm="tidegate"');
  return challenges.join(', ');
}
