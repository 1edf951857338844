import type { buildConnector as Connectors, Client } from 'undici';
import { buildConnector } from 'undici';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ClientTls } from '../tls/client-tls.ts';
import { readClientTls } from '../tls/client-tls.ts';
import type { Name } from './dns-resolver.ts';

export interface PoolOptions {
  /** To each endpoint, at most. */
  readonly connections: number;
  readonly connectTimeout: Millis;
  readonly tls: ClientTls;
  /** Offer HTTP/2, by ALPN. */
  readonly http2: boolean;
}

/** How a connection differs from another of the same pool. */
export interface Way {
  /** Undefined where it is an address, or a Unix socket. */
  readonly name: Name | undefined;
  /** The path of a Unix socket to connect to, whatever the origin. */
  readonly socketPath: string | undefined;
  readonly http2: boolean;
}

/** undici's own bound of 16 KiB would tell a write as unknown because of its cookies; Envoy's is 60 KiB. */
const MAX_HEADER_SIZE = 64 * 1024;

/** Of several addresses, how long each may take before the next is tried: longer than any round trip on earth. */
const NEXT_ADDRESS: Millis = 500;

/**
 * How long a connection is kept that nobody uses, unless the upstream says otherwise (`Keep-Alive: timeout=`, of which undici
 * takes 2 s off): servers that say nothing mostly close after 5 s.
 */
export const KEEP_ALIVE: Millis = 4000;

/** Time-outs are the exchange's own: undici's would kill quiet streams after 300 s. */
export function clientOptions(): Omit<Client.Options, 'connect'> {
  return {
    pipelining: 1,
    allowH2: false, // ours: see http2-upstream-stream.ts
    useMilo: false, // whatever UNDICI_USE_MILO says: experimental
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEADER_SIZE,
    keepAliveTimeout: KEEP_ALIVE,
  };
}

/**
 * How connections to an endpoint are made. Certificates are verified here, because @fastify/reply-from 12.6.5 does not
 * by default (CVE-2026-107318).
 * @throws an Error of node:fs that names the path, when a file cannot be read
 */
export function makeConnect(
  { connectTimeout, tls }: PoolOptions,
  { name, socketPath, http2 }: Way,
): ReturnType<typeof buildConnector> {
  const connect = buildConnector({
    allowH2: http2,
    preferH2: http2,
    timeout: connectTimeout,
    ...readClientTls(tls),
    ...(name === undefined
      ? {}
      : { lookup: name.lookup, autoSelectFamily: true, autoSelectFamilyAttemptTimeout: NEXT_ADDRESS }),
    ...(socketPath === undefined ? {} : { socketPath }),
  });
  return tellResets(connect);
}

/**
 * undici 8.13.1 (client-h1.js, onHttpSocketError) takes ECONNRESET for the end of a body that has no length: what was cut
 * would be passed on as whole. By any other name a reset is the error that it is.
 */
function tellResets(connect: Connectors.connector): Connectors.connector {
  return (options, done) => {
    connect(options, (...result) => {
      result[1]?.prependListener('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED';
      });
      done(...result);
    });
  };
}
