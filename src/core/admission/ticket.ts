import type { AccountCredential } from '../accounts/account-credential.ts';
import type { Account, RejectedAttempt } from '../accounts/account.ts';
import type { HeapItem } from '../collections/binary-heap.ts';
import type { LimitCost, RequestCosts, SendCounts } from '../cost/request-costs.ts';
import type { AdmissionCallback, EnforcementMode, ReturnSlotKind } from './gate-decision.ts';
import type { Millis } from '../scalars.ts';
import type { Limit } from '../limits/limit.ts';
import type { MeterView } from '../limits/meter.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import type { UpstreamQuota } from '../quota/calendar/upstream-quota.ts';
import type { UpstreamQuotas } from '../quota/calendar/upstream-quotas.ts';
import type { ClientQuotaUse } from '../quota/clients/client-quota-use.ts';
import type { Requester } from '../quota/requester.ts';
import { hashToNumber } from '../quota/requester.ts';
import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import { makeRequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { ClientSlot } from './client-allowance.ts';
import type { TicketOptions } from './ticket-options.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import type { LimitPlaces } from '../limits/limit-places.ts';
import type { FairQueueFlow, FairQueueItem } from '../collections/fair-queue-flow.ts';

/** A shared empty array, so that a request without limits allocates none. */
export const NO_LIMITS: readonly Limit[] = [];
export const NO_PLACES: readonly LimitPlaces[] = [];
export const NO_QUOTAS: readonly UpstreamQuota[] = [];

const DEFAULT_OPTIONS: TicketOptions = {};

/** What the gate keeps for one request, from its arrival to the end of its exchange. Only the gate writes its fields. */
export class Ticket implements FairQueueItem<Ticket>, HeapItem {
  readonly upstream: string;
  /** The client's hashed identity. */
  readonly client: string;
  /** The weight of the client's class, > 0. */
  readonly classWeight: number;
  /** The request's part of that: all of it, or divided among the clients of its address, and among the processes. */
  weight: number;
  /** The weight of its client or address in all processes, > 0: that of its class, scaled by the client's allowance. */
  wholeWeight: number;
  readonly addressGroup: string | undefined;
  readonly arrivedAt: Millis | undefined;
  readonly isSentExternally: boolean;
  /** In observe mode it stays in the queue although its request was sent. */
  readonly mode: EnforcementMode;
  /** Outermost first. The request needs a token of each. With accounts, those of its account. */
  limitRefs: readonly LimitRef[];
  readonly onSettled: AdmissionCallback;

  /**
   * Whether the body has been read, so that only the upstream decides how long an attempt takes. A request without it is
   * a poor probe: a slow client would make everybody wait. Set before each request for admission.
   */
  isBodyReceived = true;
  /** What it costs; undefined: one unit at each limit. */
  costs: RequestCosts | undefined = undefined;
  /** Undefined before the request arrives and after its exchange ends. */
  clientSlot: ClientSlot | undefined = undefined;
  limits: readonly Limit[] = NO_LIMITS;
  /** The configured quotas of its upstream; undefined if there are none. */
  quotas: UpstreamQuotas | undefined = undefined;
  /** What it uses of the quotas of its client, until its exchange ends; undefined if there are none. */
  clientQuota: ClientQuotaUse | undefined = undefined;
  /** The one whose part it waits for; undefined if it does not. */
  awaitedQuota: UpstreamQuota | undefined = undefined;
  /** When its wait for all parts of these quotas ends; undefined unless it has begun. */
  partExpiresAt: Millis | undefined = undefined;
  /** Those of which it holds a part, until it is sent; and those that count its last attempt, until that has an outcome. */
  reservedQuotas: readonly UpstreamQuota[] = NO_QUOTAS;
  countedQuotas: readonly UpstreamQuota[] = NO_QUOTAS;
  /** The limit in whose queue it waits, if it waits. */
  waitingLimit: Limit | undefined = undefined;
  /** Where a connection is reserved for it, between its admission and its send. */
  reservedSlots: ConnectionSlots | undefined = undefined;
  /** When the attempt under way was sent. */
  sentAt: Millis = Number.NEGATIVE_INFINITY;
  /** See `SendCounts`: of `countedLimit`. Those of limits with a cost are in `costs`. */
  inFlightAtSend = 0;
  sentUnits = 0;
  /** The innermost limit of the upstream at which it has one unit, once it was sent. */
  countedLimit: Limit | undefined = undefined;
  /** Limits whose tokens it has taken, until it is sent. */
  reservedLimits: readonly Limit[] = NO_LIMITS;
  /** It is in flight, and has no response yet. */
  isUnanswered = false;
  /** Where it holds a place in flight: see `LimitPlaces`. */
  heldPlaces: readonly LimitPlaces[] = NO_PLACES;
  /** Limits at which it counts as in flight. */
  inFlightLimits: readonly Limit[] = NO_LIMITS;
  /** Limits whose probe it is. */
  probedLimits: readonly Limit[] = NO_LIMITS;
  queuedAt: Millis = 0;
  expiresAt: Millis = 0;
  /** The last estimate of its wait, and the longest wait allowed; undefined if neither was needed for the decision. */
  estimatedWait: Millis | undefined = undefined;
  maxWait: Millis | undefined = undefined;
  /** The timeout of its client, if that determines the longest wait. */
  clientTimeout: Millis | undefined = undefined;
  /** Whether its client returns at the time of its Retry-After. */
  isReturning = false;
  /** Whether it does, and did not ask a moment ago. */
  keepsToPromise = false;
  /** How the Retry-After of the last refusal was chosen; undefined if it is the wait itself. */
  returnSlot: ReturnSlotKind | undefined = undefined;
  /** The account it is sent with; undefined if its upstream has none, or not the one that it needs. */
  account: Account | undefined = undefined;
  /** Whether its next attempt probes or tries an account in quarantine. */
  accountUse: 'probe' | 'trial' | undefined = undefined;
  /** The name of the account of the last attempt. */
  sentWith: string | undefined = undefined;
  /** The account of the attempt that counts as in flight. */
  inFlightAccount: Account | undefined = undefined;
  /** The credential of the last attempt. A reload may have replaced that of its account since. */
  sentCredential: AccountCredential | undefined = undefined;
  /** Accounts whose credential the upstream has rejected for this request, and the last attempt with each of them. */
  rejectedBy: Map<Account, RejectedAttempt> | undefined = undefined;
  /** The account with which its last attempt was throttled; undefined if it was not. */
  throttledBy: Account | undefined = undefined;
  /** The account that all other attempts use: one may have had its effect there, or its result is polled for. */
  keptAccount: string | undefined = undefined;
  /** Whether each of these rejections says that the credential is not valid; undefined if there was none. */
  isAccountProven: boolean | undefined = undefined;
  heapIndex = -1;
  flow: FairQueueFlow<Ticket> | undefined = undefined;
  previous: Ticket | undefined = undefined;
  next: Ticket | undefined = undefined;
  /** Computed on first use: most requests never need it. */
  #requester: Requester | undefined = undefined;
  #attributes: RequestAttributes | undefined = undefined;

  constructor(
    upstream: string,
    client: string,
    weight: number,
    limitRefs: readonly LimitRef[],
    onSettled: AdmissionCallback,
    options: TicketOptions = DEFAULT_OPTIONS,
  ) {
    this.upstream = upstream;
    this.client = client;
    this.classWeight = weight;
    this.weight = weight;
    this.wholeWeight = weight;
    this.limitRefs = limitRefs;
    this.onSettled = onSettled;
    this.addressGroup = options.addressGroup;
    this.arrivedAt = options.arrivedAt;
    this.isSentExternally = options.isSentExternally === true;
    this.mode = options.mode ?? 'enforce';
  }

  /** The limits of the request if it is sent with this account. */
  limitRefsWith(_account: string): readonly LimitRef[] {
    return this.limitRefs;
  }

  /** The name of the only account that it may be sent with; undefined: any. */
  pinnedAccount(): string | undefined {
    return undefined;
  }

  /** It is sent with an account, if its upstream has accounts: it arrived when they were configured. */
  get usesAccounts(): boolean {
    return true;
  }

  /** The class of its client; undefined if it has none. */
  get className(): string | undefined {
    return undefined;
  }

  /** Its client has proven its name. */
  get isClientProven(): boolean {
    return false;
  }

  /** The request may have an effect, by its method and its path. */
  get isWrite(): boolean {
    return false;
  }

  /** What it costs at a limit; undefined: one unit, also if a reload has changed the unit there since it arrived. */
  costAt({ meter, ref }: Limit): LimitCost | undefined {
    const cost = this.costs?.find(ref.nested);
    return cost !== undefined && cost.rule.unit === meter.unit ? cost : undefined;
  }

  /** What a limit had counted when it was sent; undefined if that is unknown. */
  countsAtSend(limit: Limit): SendCounts | undefined {
    return limit === this.countedLimit ? this : this.costAt(limit);
  }

  /** Whose share of connections and queue capacity it uses: all clients of one address share what one of them would have. */
  get fairnessKey(): string {
    return this.addressGroup ?? this.client;
  }

  /** The requester, as far as quotas distinguish requests. */
  get requester(): Requester {
    return (this.#requester ??= {
      credential: this.credential(),
      client: hashToNumber(this.client),
      address: hashToNumber(this.fairnessKey),
    });
  }

  /** Its origin and its path, as far as blocks distinguish requests. */
  get attributes(): RequestAttributes {
    return (this.#attributes ??= makeRequestAttributes(
      this.fairnessKey,
      this.client,
      this.requester.credential ?? 0,
      this.path(),
      this.pathHashSalt(),
    ));
  }

  /** Its account has changed, so the upstream sees another requester. */
  forgetRequester(): void {
    this.#requester = undefined;
    this.#attributes = undefined;
  }

  /** The path as the upstream sees it, without the query; undefined if unknown. */
  protected path(): string | undefined {
    return undefined;
  }

  /** Keyed, so that the numbers of a path mean nothing to others. */
  protected pathHashSalt(): string {
    return '';
  }

  /** The number of its credential by `hashToNumber`: 0 for none, undefined if unknown. */
  protected credential(): number | undefined {
    return 0;
  }
}

/** Returns the attributes that a meter's pacing needs: undefined unless a block is in force there. */
export function attributesFor({ hasBlock }: MeterView, ticket: Ticket): RequestAttributes | undefined {
  return hasBlock === true ? ticket.attributes : undefined;
}
