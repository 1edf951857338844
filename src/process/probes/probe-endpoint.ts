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

/**
 * Opens one connection to an endpoint, with its TLS handshake, and closes it. Sends no request. Without undici, which the primary
 * of several workers does not load.
 * @param url an origin, or unix:/path
 * @returns what prevents the connection; undefined if it was opened
 * @throws an Error of node:fs that names the path, when a certificate file cannot be read
 */
export async function probeEndpoint(url: string, options: ProbeOptions): Promise<string | undefined> {
  const { connectTimeout } = options;
  const { socket, openedEvent } = openSocket(url, options);
  return new Promise((resolve) => {
    const timer = setTimeout(() => end(describeConnectFailure({ code: 'ETIMEDOUT' })), connectTimeout);
    const end = (problem: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(problem);
    };
    // An error after the end has no effect: the endpoint may reset a connection without a request.
    socket.on('error', (error) => end(describeConnectFailure(error)));
    socket.once(openedEvent, () => {
      const own = ownEndError(socket);
      end(own && describeConnectFailure(own));
    });
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
