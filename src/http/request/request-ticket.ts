import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { hashToNumber } from '../../core/quota/requester.ts';
import type { AdmissionCallback, TicketOptions } from '../../core/admission/ticket.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { RoutedRequest } from './routed-request.ts';
import type { HashFunction } from './client-hash.ts';
import { hashedCredential, matchLimits } from './match-limits.ts';
import { rewriteTarget } from './router.ts';

/** The gate ticket of a request. */
export function makeTicket(
  routed: RoutedRequest,
  hash: HashFunction,
  settle: AdmissionCallback,
  options: TicketOptions,
): Ticket {
  return new RequestTicket(routed, hash, matchLimits(routed, hash), settle, options);
}

/** Hashes the credential only when it is needed: for most requests it is not. */
class RequestTicket extends Ticket {
  readonly #routed: RoutedRequest;
  readonly #hash: HashFunction;

  constructor(
    routed: RoutedRequest,
    hash: HashFunction,
    refs: readonly LimitRef[],
    settle: AdmissionCallback,
    options: TicketOptions,
  ) {
    const { client, route } = routed;
    super(route.target.name, client.hash, client.weight, refs, settle, options);
    this.#routed = routed;
    this.#hash = hash;
  }

  protected override path(): string {
    const { request, route } = this.#routed;
    return rewriteTarget(request.path, route);
  }

  protected override pathHashSalt(): string {
    return this.#hash('path');
  }

  protected override credential(): number {
    return hashToNumber(hashedCredential(this.#routed, this.#hash));
  }
}
