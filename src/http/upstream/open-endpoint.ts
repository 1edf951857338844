import { isIP } from 'node:net';
import type { buildConnector } from 'undici';
import { unixSocketPath } from '../../config/values/upstream-url.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { UpstreamPoolOptions } from './connector.ts';
import { KEEP_ALIVE_TIMEOUT, makeConnector, undiciClientOptions } from './connector.ts';
import type { DnsLookup } from './dns-resolver.ts';
import { DnsResolver } from './dns-resolver.ts';
import { Http1ConnectionPool } from './http1-connection-pool.ts';
import type { Http2ConnectionPoolOptions } from './http2/http2-options.ts';
import { Http2ConnectionPool } from './http2/http2-connection-pool.ts';
import type { EndpointConnections } from './pooled-send.ts';

export interface OpenEndpointOptions {
  readonly pool: UpstreamPoolOptions;
  readonly lookup: DnsLookup;
  readonly refresh: Millis;
  readonly clock: Clock;
}

/** One origin of an upstream. */
export interface Endpoint {
  readonly index: number;
  readonly origin: string;
  /** Sent as Host, unless the client's is preserved. */
  readonly authority: string;
  /** Its name in metrics and logs. */
  readonly label: string;
  /** The TLS server name, which the certificate must match. */
  readonly serverName: string;
  readonly connections: EndpointConnections;
  /** For requests that ask for a change of protocol: always HTTP/1.1. */
  readonly upgradeConnections: EndpointConnections;
  /** Opens a connection over HTTP/1.1. */
  readonly connect: ReturnType<typeof buildConnector>;
  /** Undefined if the host is an IP address. */
  readonly resolver: DnsResolver | undefined;
}

type PoolListener = Pick<Http2ConnectionPoolOptions, 'onCapacity' | 'onCapacityChange' | 'onAwaited' | 'onViolation'>;

/** @throws an Error of node:fs, when a certificate cannot be read */
export function openEndpoint(
  url: string,
  index: number,
  options: OpenEndpointOptions,
  listener: PoolListener,
): Endpoint {
  const { pool, lookup, refresh: refreshInterval, clock } = options;
  const socketPath = unixSocketPath(url);
  // A Unix socket has no host name: `localhost`, as curl sends it.
  const { origin, host, hostname } = new URL(socketPath === undefined ? url : 'http://localhost');
  const bareHostname = hostname.replace(/^\[|\]$/g, '');
  const resolver =
    isIP(bareHostname) === 0 && socketPath === undefined
      ? new DnsResolver({
          hostname: bareHostname,
          lookup,
          refreshInterval,
          clock,
          onAddressRemoved: () => all.forEach((each) => each.dropStaleAddresses()),
        })
      : undefined;
  const common = {
    origin,
    maxConnections: pool.maxConnections,
    onCapacity: listener.onCapacity,
    isCurrentAddress: (address: string) => resolver?.isCurrentAddress(address) ?? false,
  };
  const connect = makeConnector(pool, { resolver, socketPath, http2: false });
  const upgradeConnections = new Http1ConnectionPool({
    ...common,
    client: undiciClientOptions(),
    connect,
    clock,
  });
  const connections = pool.http2
    ? new Http2ConnectionPool({
        ...common,
        onCapacityChange: listener.onCapacityChange,
        onAwaited: listener.onAwaited,
        onViolation: listener.onViolation,
        clock,
        connect: makeConnector(pool, { resolver, socketPath, http2: true }),
        connectTimeout: pool.connectTimeout,
        idleTimeout: KEEP_ALIVE_TIMEOUT,
        http1: upgradeConnections,
      })
    : upgradeConnections;
  const all = new Set<EndpointConnections>([connections, upgradeConnections]);
  const label = socketPath === undefined ? host : url;
  return {
    index,
    origin,
    authority: host,
    label,
    serverName: pool.tls.serverName ?? bareHostname,
    connections,
    upgradeConnections,
    connect,
    resolver,
  };
}
