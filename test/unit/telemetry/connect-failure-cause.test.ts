import { expect, test } from 'vitest';
import { classifyConnectFailure } from '../../../src/telemetry/connect-failure-cause.ts';

test.each([
  ['ECONNREFUSED', 'refused'],
  ['EHOSTUNREACH', 'unreachable'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['ENOTFOUND', 'dns'],
  ['ECONNRESET', 'closed'],
  ['CERT_HAS_EXPIRED', 'certificate_expired'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'certificate_untrusted'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate_invalid'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
  ['SOMETHING_NEW', 'other'],
  [undefined, 'other'],
])('counts a failed connection with the code %s as %s', (code, cause) => {
  expect(classifyConnectFailure(code)).toBe(cause);
});
