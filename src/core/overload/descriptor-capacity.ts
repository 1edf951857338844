/** For Node, files, DNS look-ups, and the admin connections. */
const RESERVED_DESCRIPTORS = 320;

/**
 * Caps client connections by the file descriptors that are left beside upstream connections. Client connections get at least
 * half of the descriptors that are not reserved, because over HTTP/1.1 no more upstream connections than client connections
 * are busy; and at least one.
 * @param upstreamConnections connections to all upstreams together
 * @param descriptorLimit file descriptors that this process may open
 */
export function capByDescriptors(wanted: number, upstreamConnections: number, descriptorLimit: number): number {
  const available = descriptorLimit - Math.min(RESERVED_DESCRIPTORS, Math.floor(descriptorLimit / 4));
  return Math.max(1, Math.min(wanted, Math.max(available - upstreamConnections, Math.floor(available / 2))));
}
