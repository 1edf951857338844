import type { buildConnector as Connectors, Client } from 'undici';
import { buildConnector } from 'undici';
import type { Millis } from '../../core/scalars.ts';
import type { ClientTls } from '../tls/client-tls.ts';
import { readClientTls } from '../tls/client-tls.ts';
import { ownEndError } from './connect-error-details.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { MAX_RESPONSE_HEADERS } from './response-defect.ts';
import { MASKED_RESET } from './send-failure.ts';

export interface UpstreamPoolOptions {
  /** Maximum for each endpoint. */
  readonly maxConnections: number;
  readonly connectTimeout: Millis;
  readonly tls: ClientTls;
  /** Offer HTTP/2, by ALPN. */
  readonly http2: boolean;
}

/** How the connections to one endpoint are made. */
export interface ConnectorOptions {
  /** Undefined if the endpoint is an IP address or a Unix socket. */
  readonly resolver: DnsResolver | undefined;
  /** Path of a Unix socket; undefined: TCP. */
  readonly socketPath: string | undefined;
  readonly http2: boolean;
}

/** How long an address may take to connect before the next is tried: longer than any round trip on earth. */
const ADDRESS_ATTEMPT_TIMEOUT: Millis = 500;

/**
 * How long an idle connection is kept, unless the upstream sends `Keep-Alive: timeout=`, from which undici subtracts 2 s. Servers
 * that do not send it mostly close after 5 s.
 */
export const KEEP_ALIVE_TIMEOUT: Millis = 4000;

/** undici's timeouts are off: they would end idle streams after 300 s, and the exchange has its own. */
export function undiciClientOptions(): Omit<Client.Options, 'connect'> {
  return {
    pipelining: 1,
    allowH2: false, // ours: see http2-upstream-stream.ts
    useMilo: false, // whatever UNDICI_USE_MILO says: experimental
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_RESPONSE_HEADERS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
  };
}

/**
 * Makes connections to an endpoint. Certificates are verified here, because @fastify/reply-from 12.6.5 does not verify them
 * by default (CVE-2026-107318).
 * @throws an Error of node:fs that names the path, when a file cannot be read
 */
export function makeConnector(
  { connectTimeout, tls }: UpstreamPoolOptions,
  { resolver, socketPath, http2 }: ConnectorOptions,
): ReturnType<typeof buildConnector> {
  const connect = buildConnector({
    allowH2: http2,
    preferH2: http2,
    timeout: connectTimeout,
    ...readClientTls(tls),
    ...(resolver === undefined
      ? {}
      : { lookup: resolver.lookup, autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT }),
    ...(socketPath === undefined ? {} : { socketPath }),
  });
  return refuseOwnEnd(reportResets(connect));
}

/** Refuses connections of a port to itself: see `ownEndError`. */
export function refuseOwnEnd(connect: Connectors.connector): Connectors.connector {
  return (options, done) => {
    connect(options, (...result) => {
      const [failure, socket] = result;
      const error = failure === null ? ownEndError(socket) : undefined;
      if (error === undefined) return done(...result);
      socket?.destroy();
      done(error, null);
    });
  };
}

/**
 * undici 8.13.1 (client-h1.js, onHttpSocketError) takes ECONNRESET for the end of a body of unknown length, so that a truncated
 * body would be forwarded as complete. Under another code it reports the reset as an error. `failureOf` restores the code.
 */
function reportResets(connect: Connectors.connector): Connectors.connector {
  return (options, done) => {
    connect(options, (...result) => {
      result[1]?.prependListener('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET') error.code = MASKED_RESET;
      });
      done(...result);
    });
  };
}
