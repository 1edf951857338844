/** Why no connection to an upstream could be opened: the `cause` label of `tidegate_upstream_connect_failures_total`. */
export const CONNECT_FAILURE_CAUSES = [
  'refused',
  'unreachable',
  'timeout',
  'dns',
  'closed',
  'certificate_expired',
  'certificate_untrusted',
  'certificate_invalid',
  'tls',
  'other',
] as const;
export type ConnectFailureCause = (typeof CONNECT_FAILURE_CAUSES)[number];

const CAUSES: ReadonlyMap<string, ConnectFailureCause> = new Map([
  ['ECONNREFUSED', 'refused'],
  ['ENOENT', 'refused'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ENETUNREACH', 'unreachable'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['ENOTFOUND', 'dns'],
  ['EAI_AGAIN', 'dns'],
  ['ECONNRESET', 'closed'],
  ['ECONNABORTED', 'closed'],
  ['EPIPE', 'closed'],
  ['UND_ERR_SOCKET', 'closed'],
  ['REFUSED_STREAM', 'closed'],
  ['GOAWAY', 'closed'],
  ['CERT_HAS_EXPIRED', 'certificate_expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate_untrusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'certificate_untrusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'certificate_untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'certificate_untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate_untrusted'],
  ['CERT_NOT_YET_VALID', 'certificate_invalid'],
  ['CERT_REVOKED', 'certificate_invalid'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate_invalid'],
]);

/** @param code the code of the error, as the system, Node or OpenSSL names it; undefined if it has none */
export function classifyConnectFailure(code: string | undefined): ConnectFailureCause {
  if (code === undefined) return 'other';
  return CAUSES.get(code) ?? (code.startsWith('ERR_SSL_') || code === 'EPROTO' ? 'tls' : 'other');
}
