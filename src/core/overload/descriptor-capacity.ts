/** For Node, files, names to look up, and both ports for operators. */
const RESERVE = 320;

/**
 * How many connections from clients there are descriptors for, beside those to upstreams: at least half of what is left
 * when some are set aside, as over HTTP/1.1 no more of one kind are busy than of the other; and at least one.
 * @param upstream connections to all upstreams together
 * @param limit descriptors that this process may have open
 */
export function fitDescriptors(wanted: number, upstream: number, limit: number): number {
  const rest = limit - Math.min(RESERVE, Math.floor(limit / 4));
  return Math.max(1, Math.min(wanted, Math.max(rest - upstream, Math.floor(rest / 2))));
}
