import type { Socket } from 'node:net';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Millis } from '../../core/scalars.ts';
import type { ClientTls } from '../../http/tls/client-tls.ts';
import { readClientTls } from '../../http/tls/client-tls.ts';
import { describeConnectFailure, ownEndError } from '../../http/upstream/connect-error-details.ts';
import { unixSocketPath } from '../../config/values/upstream-url.ts';

export interface ProbeOptions {
  readonly connectTimeout: Millis;
  readonly tls: ClientTls;
  /** Offer HTTP/2, by ALPN. */
  readonly http2: boolean;
}

/** Why a connection could not be opened. */
export interface ConnectProblem {
  /** Of the system, of Node or of OpenSSL; empty if there is none. */
  readonly code: string;
  /** In a few words. */
  readonly text: string;
}

/**
 * Opens one connection to an endpoint, with its TLS handshake, and closes it. Sends no request. Without undici, which the primary
 * of several workers does not load.
 * @param url an origin, or unix:/path
 * @returns what prevents the connection; undefined if it was opened
 * @throws an Error of node:fs that names the path, when a certificate file cannot be read
 */
export async function probeEndpoint(url: string, options: ProbeOptions): Promise<ConnectProblem | undefined> {
  const { connectTimeout } = options;
  const { socket, openedEvent } = openSocket(url, options);
  return new Promise((resolve) => {
    const timer = setTimeout(() => end({ code: 'ETIMEDOUT' }), connectTimeout);
    const end = (error: Partial<NodeJS.ErrnoException> | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(error && { code: error.code ?? '', text: describeConnectFailure(error) });
    };
    // An error after the end has no effect: the endpoint may reset a connection without a request.
    socket.on('error', end);
    socket.once(openedEvent, () => end(ownEndError(socket)));
  });
}

function openSocket(
  url: string,
  { tls, http2 }: ProbeOptions,
): { readonly socket: Socket; readonly openedEvent: 'connect' | 'secureConnect' } {
  const path = unixSocketPath(url);
  if (path !== undefined) return { socket: connectTcp({ path }), openedEvent: 'connect' };
  const { hostname, protocol, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:') return { socket: connectTcp({ host, port: Number(port || 80) }), openedEvent: 'connect' };
  const socket = connectTls({
    host,
    port: Number(port || 443),
    servername: isIP(host) === 0 ? host : '',
    ...readClientTls(tls),
    ...(http2 ? { ALPNProtocols: ['h2', 'http/1.1'] } : {}),
  });
  return { socket, openedEvent: 'secureConnect' };
}
