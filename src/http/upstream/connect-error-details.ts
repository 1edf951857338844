import type { Socket } from 'node:net';

/** The details about a failed connection to the upstream, for the client. */
export interface ConnectErrorDetails {
  readonly detail: string;
  /** An error type of RFC 9209 §2.3. */
  readonly proxyError: string;
}

const CERTIFICATE_ERRORS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  CERT_REVOKED: 'has been revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed and not trusted by this proxy',
  SELF_SIGNED_CERT_IN_CHAIN: 'is from an authority that this proxy does not trust',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'is from an authority that this proxy does not trust',
  UNABLE_TO_GET_ISSUER_CERT: 'is from an authority that this proxy does not trust',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is from an authority that this proxy does not trust',
};

const NAME_NOT_RESOLVED = 'The host name of the upstream could not be resolved. Nothing was sent.';
const CONNECT_TIMED_OUT = 'Connecting to the upstream timed out. Nothing was sent.';

const CONNECT_ERRORS: Readonly<Record<string, ConnectErrorDetails>> = {
  ENOTFOUND: { detail: NAME_NOT_RESOLVED, proxyError: 'dns_error' },
  EAI_AGAIN: { detail: NAME_NOT_RESOLVED, proxyError: 'dns_timeout' },
  ETIMEDOUT: { detail: CONNECT_TIMED_OUT, proxyError: 'connection_timeout' },
  UND_ERR_CONNECT_TIMEOUT: { detail: CONNECT_TIMED_OUT, proxyError: 'connection_timeout' },
  REFUSED_STREAM: {
    detail: 'The upstream refused the request without processing it. The request can be retried.',
    proxyError: 'destination_unavailable',
  },
  GOAWAY: {
    detail: 'The upstream closed the connection without processing the request. The request can be retried.',
    proxyError: 'connection_terminated',
  },
};

/** What OpenSSL reports if the first bytes of the server are no TLS record, such as those of a plain HTTP response. */
const NOT_TLS = 'ERR_SSL_WRONG_VERSION_NUMBER';

const ANSWERED_WITHOUT_TLS: ConnectErrorDetails = {
  detail:
    'The upstream does not speak TLS at this port: its url probably needs http in place of https. Nothing was sent.',
  proxyError: 'tls_protocol_error',
};

/** @param code see `SendFailure.cause`. Returns undefined if nothing more is known than that connecting failed */
export function explainConnectError(code: string | undefined): ConnectErrorDetails | undefined {
  if (code === undefined) return undefined;
  const certificate = Object.hasOwn(CERTIFICATE_ERRORS, code) ? CERTIFICATE_ERRORS[code] : undefined;
  if (certificate !== undefined) {
    const detail = `The certificate of the upstream ${certificate}. Nothing was sent.`;
    return { detail, proxyError: 'tls_certificate_error' };
  }
  if (code === NOT_TLS) return ANSWERED_WITHOUT_TLS;
  // Codes of OpenSSL.
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') {
    const proxyError = code.includes('_ALERT_') ? 'tls_alert_received' : 'tls_protocol_error';
    return { detail: 'The TLS handshake with the upstream failed. Nothing was sent.', proxyError };
  }
  return Object.hasOwn(CONNECT_ERRORS, code) ? CONNECT_ERRORS[code] : undefined;
}

const CONNECT_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be resolved',
  ETIMEDOUT: 'connecting timed out',
  ENOENT: 'the socket does not exist',
  EACCES: 'permission denied',
  [NOT_TLS]: 'it does not speak TLS at this port: the url probably needs http in place of https',
};

/** Why a connection could not be opened, in a few words for operators. */
export function describeConnectFailure({ code = '', message = '' }: Partial<NodeJS.ErrnoException>): string {
  if (Object.hasOwn(CERTIFICATE_ERRORS, code)) return `its certificate ${CERTIFICATE_ERRORS[code]}`;
  if (Object.hasOwn(CONNECT_FAILURES, code)) return CONNECT_FAILURES[code] ?? code;
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return `the TLS handshake failed (${code})`;
  return code === '' ? message : code;
}

/**
 * The error of a connection from a port to itself; undefined for any other. While nobody listens on a local port from the range of
 * outgoing connections, the system may choose that same port for one, and TCP then opens it (RFC 9293, section 3.5, simultaneous
 * open). The upstream could not listen again before it is closed. Go's net.Dial refuses these connections too.
 */
export function ownEndError(socket: Socket): NodeJS.ErrnoException | undefined {
  const { localAddress, localPort, remoteAddress: address, remotePort: port } = socket;
  if (port === undefined || localPort !== port || localAddress !== address) return undefined; // a Unix socket has no port
  const error = new Error(`connect ECONNREFUSED ${address}:${port}`);
  return Object.assign(error, { code: 'ECONNREFUSED', syscall: 'connect', address, port });
}
