/** What is told of a connection that did not come about. */
export interface Explained {
  readonly detail: string;
  /** An error type of RFC 9209 §2.3. */
  readonly proxyError: string;
}

const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  CERT_REVOKED: 'has been revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'vouches for itself, and is not trusted here',
  SELF_SIGNED_CERT_IN_CHAIN: 'is from an authority that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'is from an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT: 'is from an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is from an authority that is not trusted here',
};

const OTHERS: Readonly<Record<string, Explained>> = {
  ENOTFOUND: { detail: 'The name of the upstream could not be looked up.', proxyError: 'dns_error' },
  EAI_AGAIN: { detail: 'The name of the upstream could not be looked up.', proxyError: 'dns_timeout' },
  ETIMEDOUT: { detail: 'No connection to the upstream came about in time.', proxyError: 'connection_timeout' },
  UND_ERR_CONNECT_TIMEOUT: {
    detail: 'No connection to the upstream came about in time.',
    proxyError: 'connection_timeout',
  },
  REFUSED_STREAM: { detail: 'The upstream turned the request away unread.', proxyError: 'destination_unavailable' },
  GOAWAY: {
    detail: 'The upstream closed the connection before it read the request.',
    proxyError: 'connection_terminated',
  },
};

/** @param code of the error, as `Failure` has it. Undefined: there is no more to say than that it failed. */
export function explainCause(code: string | undefined): Explained | undefined {
  if (code === undefined) return undefined;
  const certificate = Object.hasOwn(CERTIFICATES, code) ? CERTIFICATES[code] : undefined;
  if (certificate !== undefined) {
    return { detail: `The certificate of the upstream ${certificate}.`, proxyError: 'tls_certificate_error' };
  }
  // Those of OpenSSL.
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') {
    const proxyError = code.includes('_ALERT_') ? 'tls_alert_received' : 'tls_protocol_error';
    return { detail: 'The upstream and this proxy could not agree on TLS.', proxyError };
  }
  return Object.hasOwn(OTHERS, code) ? OTHERS[code] : undefined;
}
