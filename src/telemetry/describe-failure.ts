import type { EndpointFailure } from '../core/events/gate-views.ts';

/** What failed, in a few words: `unreachable: connection refused`, `responds with 503`. */
export function describeFailure({ reason, code }: EndpointFailure): string {
  switch (reason) {
    case 'connect':
      return `${REFUSED_UNREAD.has(code) ? 'requests refused unread' : 'unreachable'}: ${describeConnectError(code)}`;
    case 'reset':
      return 'connection closed before a response';
    case 'timeout':
      return 'no response in time';
    case 'status':
      return `responds with ${code ?? 'an error'}`;
    case 'aborted':
    case 'too_many_files':
      return 'failed in this process';
  }
}

/** A connection was there: the upstream refused a request on it, or closed it before it read the request (HTTP/2). */
const REFUSED_UNREAD: ReadonlySet<string | undefined> = new Set(['REFUSED_STREAM', 'GOAWAY']);

const UNTRUSTED_AUTHORITY = 'certificate authority not trusted';
const CONNECT_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset'],
  ['ECONNABORTED', 'connection closed'],
  ['EHOSTUNREACH', 'no route to the host'],
  ['ENETUNREACH', 'no route to the network'],
  ['ENOTFOUND', 'host name not found'],
  ['EAI_AGAIN', 'name server does not respond'],
  ['ETIMEDOUT', 'connecting timed out'],
  ['UND_ERR_CONNECT_TIMEOUT', 'connecting timed out'],
  ['ENOENT', 'no such socket file'],
  ['EACCES', 'permission denied'],
  ['REFUSED_STREAM', 'stream refused'],
  ['GOAWAY', 'connection closed'],
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['CERT_NOT_YET_VALID', 'certificate not valid yet'],
  ['CERT_REVOKED', 'certificate revoked'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate is for another name'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate is self-signed and not trusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNTRUSTED_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNTRUSTED_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNTRUSTED_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNTRUSTED_AUTHORITY],
]);

function describeConnectError(code: string | undefined): string {
  if (code === undefined) return 'no connection';
  const known = CONNECT_ERRORS.get(code);
  if (known !== undefined) return known;
  return code.startsWith('ERR_SSL_') || code === 'EPROTO' ? `TLS handshake failed (${code})` : code;
}
