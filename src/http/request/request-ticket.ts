import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { hashToNumber } from '../../core/quota/requester.ts';
import type { AdmissionCallback } from '../../core/admission/gate-decision.ts';
import type { TicketOptions } from '../../core/admission/ticket-options.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import { makeRequestCosts } from '../cost/declared-costs.ts';
import { isSafeRequest, type RoutedRequest } from './routed-request.ts';
import type { HashFunction } from './client-hash.ts';
import { hashedCredential, matchLimits } from './match-limits.ts';
import { rewriteTarget } from './router.ts';

const NO_REFS: readonly LimitRef[] = [];

export interface RequestTicketOptions extends TicketOptions {
  /** The only account that the request may be sent with; undefined: any. Called at each choice. */
  readonly pinnedAccount?: (() => string | undefined) | undefined;
}

/** The gate ticket of a request. */
export function makeTicket(
  routed: RoutedRequest,
  hash: HashFunction,
  settle: AdmissionCallback,
  options: RequestTicketOptions,
): Ticket {
  // With accounts, the limits follow from the choice of one.
  const refs = routed.route.target.accounts === undefined ? matchLimits(routed, hash) : NO_REFS;
  const ticket = new RequestTicket(routed, hash, refs, settle, options);
  ticket.costs = makeRequestCosts(routed);
  return ticket;
}

/** Hashes the credential only when it is needed: for most requests it is not. */
class RequestTicket extends Ticket {
  readonly #routed: RoutedRequest;
  readonly #hash: HashFunction;
  readonly #pinnedAccount: (() => string | undefined) | undefined;

  constructor(
    routed: RoutedRequest,
    hash: HashFunction,
    refs: readonly LimitRef[],
    settle: AdmissionCallback,
    options: RequestTicketOptions,
  ) {
    const { client, route } = routed;
    super(route.target.name, client.hash, client.weight, refs, settle, { ...options, mode: route.policy.mode });
    this.#routed = routed;
    this.#hash = hash;
    this.#pinnedAccount = options.pinnedAccount;
  }

  override limitRefsWith(account: string): readonly LimitRef[] {
    return matchLimits(this.#routed, this.#hash, account);
  }

  override pinnedAccount(): string | undefined {
    return this.#pinnedAccount?.() ?? this.keptAccount;
  }

  override get usesAccounts(): boolean {
    return this.#routed.route.target.accounts !== undefined;
  }

  override get className(): string | undefined {
    return this.#routed.client.className;
  }

  override get isClientProven(): boolean {
    return this.#routed.client.isProven === true;
  }

  override get isWrite(): boolean {
    return !isSafeRequest(this.#routed);
  }

  protected override path(): string {
    const { request, route } = this.#routed;
    return rewriteTarget(request.path, route);
  }

  protected override pathHashSalt(): string {
    return this.#hash('path');
  }

  protected override credential(): number {
    return hashToNumber(this.account?.name ?? hashedCredential(this.#routed, this.#hash));
  }
}
