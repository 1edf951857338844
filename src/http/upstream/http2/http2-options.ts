import type { buildConnector } from 'undici';
import type { Clock, Millis } from '../../../core/scalars.ts';
import type { AwaitedConnections } from '../awaited-connections.ts';
import type { EndpointConnections } from '../pooled-send.ts';

export interface Http2ConnectionOptions {
  readonly origin: string;
  readonly connect: ReturnType<typeof buildConnector>;
  /** Whether the endpoint's name resolves to this address. */
  readonly isCurrentAddress: (address: string) => boolean;
  /** Requests that it carries at a time, if the upstream takes as many. */
  readonly maxStreams: number;
  /** How long it is kept without a request. */
  readonly idleTimeout: Millis;
  /** How long the TLS handshake may take, and after it the first frame. */
  readonly connectTimeout: Millis;
  readonly clock: Clock;
}

export interface Http2ConnectionPoolOptions extends Omit<Http2ConnectionOptions, 'maxStreams'> {
  /** Maximum of connections that take requests. Those that finish their last requests do not count: their requests bound them. */
  readonly maxConnections: number;
  /** There is room for another request. */
  readonly onCapacity: () => void;
  /** The pool carries another number of requests at a time. It starts with one for each connection. */
  readonly onCapacityChange: (capacity: number) => void;
  /** A request waits until another one ends that has one of these connections for itself. */
  readonly onAwaited: (connections: AwaitedConnections) => void;
  /** The endpoint has violated HTTP/2: from now on, no requests share a connection, for a time. */
  readonly onViolation: (error: Error) => void;
  /** Used if the endpoint does not support HTTP/2. */
  readonly http1: EndpointConnections;
}

/** Connections that are always allowed for requests that share none. */
const MIN_UNSHARED = 16;

/** For the connections with one request at a time beside shared ones. They do not count towards the capacity. */
export function unsharedOptions(
  shared: Http2ConnectionPoolOptions,
  onViolation: (error: Error) => void,
): Http2ConnectionPoolOptions {
  const maxConnections = Math.max(MIN_UNSHARED, shared.maxConnections);
  return { ...shared, maxConnections, onCapacityChange: () => undefined, onViolation };
}
