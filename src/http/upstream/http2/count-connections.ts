import type { Http2Connection } from './http2-connection.ts';

type Connections = ReadonlySet<Http2Connection>;

export function countConnecting(all: Connections): number {
  let count = 0;
  for (const { isConnecting } of all) if (isConnecting) count += 1;
  return count;
}

/** Whether one carries requests, or is ready to, and does not seem dead. */
export function isAnyOpen(all: Connections): boolean {
  for (const { isConnecting, isClosing, isSuspect } of all) if (!isConnecting && !isClosing && !isSuspect) return true;
  return false;
}

/** How many more connections may be opened now. Those that finish their last requests do not count, but those that may take others again do. */
export function countUnopened(all: Connections, maxConnections: number): number {
  let inUse = 0;
  for (const connection of all) if (!connection.isRetired && !connection.isClosing) inUse += 1;
  return maxConnections - inUse;
}

/** How many more connections may carry a request, if each carries one at a time: those without one, and those that may be opened. */
export function countFree(all: Connections, maxConnections: number): number {
  let free = countUnopened(all, maxConnections);
  for (const { isRetired, isClosing, activeStreams } of all) {
    if (!isRetired && !isClosing && activeStreams === 0) free += 1;
  }
  return free;
}

/**
 * How many requests the connections carry at a time: on those that take no more, the ones that they have.
 * @param expectedStreams that a connection not yet open is expected to take; undefined if each carries one request
 */
export function countCapacity(
  all: Connections,
  maxConnections: number,
  expectedStreams: number | undefined,
  takesRequests: (connection: Http2Connection) => boolean,
): number {
  let capacity = maxConnections;
  if (expectedStreams !== undefined) capacity = expectedStreams * Math.max(0, countUnopened(all, maxConnections));
  for (const connection of all) {
    if (expectedStreams === undefined || connection.isRetired || !takesRequests(connection)) {
      capacity += connection.activeStreams;
    } else {
      capacity += connection.isConnecting ? expectedStreams : connection.maxStreams;
    }
  }
  return capacity;
}
