import { clientAddress, socketAddress } from '../request/client-address.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/**
 * The hash of the address that a request counts for in the bounds of this process: the client's own, IPv6 as its /64. Undefined if
 * a trusted proxy does not name its client, as in the reports of an ingress: they concern many clients.
 */
export function senderAddress(
  request: HttpServerRequest,
  { isTrustedProxy, hashAddress }: Pick<Snapshot, 'isTrustedProxy' | 'hashAddress'>,
): string | undefined {
  const peer = socketAddress(request.socket.remoteAddress);
  const address = clientAddress(request, peer, isTrustedProxy);
  return address === peer && isTrustedProxy(peer) ? undefined : hashAddress(address);
}
