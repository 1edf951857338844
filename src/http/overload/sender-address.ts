import { clientAddress, socketAddress } from '../request/client-address.ts';
import type { HashFunction } from '../request/client-hash.ts';
import { networkOf } from '../request/client-identity.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

export interface SenderAddressOptions {
  readonly isTrustedProxy: (address: string) => boolean;
  /** Of a network: see `networkOf`. */
  readonly hash: HashFunction;
}

/**
 * The hash of the address that a request counts for in the bounds of this process: the client's own, IPv6 as its /64. Undefined if
 * a trusted proxy does not name its client, as in the reports of an ingress: they concern many clients.
 */
export function senderAddress(
  request: HttpServerRequest,
  { isTrustedProxy, hash }: SenderAddressOptions,
): string | undefined {
  const peer = socketAddress(request.socket.remoteAddress);
  const address = clientAddress(request, peer, isTrustedProxy);
  return address === peer && isTrustedProxy(peer) ? undefined : hash(networkOf(address));
}
