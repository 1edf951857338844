import type { ClientSlot } from './client-allowance.ts';
import type { Decision } from '../events/proxy-events.ts';
import type { HeapItem } from '../collections/binary-heap.ts';
import type { Limit } from '../limits/limit.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import type { Flow, Waiter } from './fair-queue.ts';
import type { Requester } from '../quota/requester.ts';
import { numberOf } from '../quota/requester.ts';
import type { Room } from './connection-slots.ts';
import type { Source } from '../rate/breaker/request-attributes.ts';
import { sourceOf } from '../rate/breaker/request-attributes.ts';
import type { Millis, Refusal } from '../exchange/attempt-outcome.ts';

/** The gate's answer to an arrival. */
export type Admission =
  /** `wouldHave`: only where we observe. */
  | { readonly kind: 'admitted'; readonly wouldHave?: Decision }
  | { readonly kind: 'refused'; readonly why: Refusal; readonly retryAfter: Millis };

/** Told once to a ticket that was queued. */
export type Settle = (admission: Admission, now: Millis) => void;

/** One for all: a decision that nothing limits makes no array. */
export const NO_LIMITS: readonly Limit[] = [];

export const ADMITTED: Admission = { kind: 'admitted' };

/** A request's standing at the gate, from its arrival to its leave. Its fields belong to the gate. */
export class Ticket implements Waiter<Ticket>, HeapItem {
  readonly upstream: string;
  /** Hashed identity. */
  readonly client: string;
  /** The weight of the client's class, > 0. */
  readonly classWeight: number;
  /** Its part of that: all of it, or divided among those who share its address. */
  weight: number;
  /** The address that its key nests in, hashed; undefined for a client that is told apart by its address. */
  nest: string | undefined = undefined;
  /** Outermost first; a request needs a token of every one of them. */
  readonly refs: readonly LimitRef[];
  readonly settle: Settle;

  /**
   * Its body has been read, so that only the upstream decides how long an attempt takes. Without it a request is a poor
   * probe: its client could keep everybody waiting.
   */
  bodyInHand = true;
  /** Whoever asks for it sends it: it takes no connection of ours, and its answer is not seen here. */
  isSentElsewhere = false;
  /** Until it arrives, and after it has left: none. */
  slot: ClientSlot | undefined = undefined;
  limits: readonly Limit[] = NO_LIMITS;
  /** Where it waits; undefined while it does not. */
  waitsAt: Limit | undefined = undefined;
  /** Where it holds a place, while it is admitted and not sent. */
  room: Room | undefined = undefined;
  /** When the attempt under way was sent. */
  sentAt: Millis = Number.NEGATIVE_INFINITY;
  /** Requests in flight at the innermost limit of the upstream's when it was sent, itself included; 0 where nobody counted. */
  among = 0;
  /** Which of all sends of that limit it is, from 1. */
  number = 0;
  /** Limits whose tokens it has taken, while it has not been sent. */
  admitted: readonly Limit[] = NO_LIMITS;
  /** Limits in which it counts as in flight. */
  counted: readonly Limit[] = NO_LIMITS;
  /** Of these it is the one probe. */
  probes: readonly Limit[] = NO_LIMITS;
  /** The limit that its last attempt was refused for; undefined where it was not, or nobody knows for which. */
  blamed: Limit | undefined = undefined;
  queuedAt: Millis = 0;
  expiresAt: Millis = 0;
  /** How long it was reckoned to wait, and how long it may; undefined while nobody had to reckon. */
  estimate: Millis | undefined = undefined;
  patience: Millis | undefined = undefined;
  heapIndex = -1;
  flow: Flow<Ticket> | undefined = undefined;
  previous: Ticket | undefined = undefined;
  next: Ticket | undefined = undefined;
  /** Made when somebody asks: of most requests nobody does. */
  #requester: Requester | undefined = undefined;
  #source: Source | undefined = undefined;

  constructor(upstream: string, client: string, weight: number, refs: readonly LimitRef[], settle: Settle) {
    this.upstream = upstream;
    this.client = client;
    this.classWeight = weight;
    this.weight = weight;
    this.refs = refs;
    this.settle = settle;
  }

  /** Who has its connections and its places in the queue: the keys of one address have together what one of them would have alone. */
  get holder(): string {
    return this.nest ?? this.client;
  }

  /** Who sends it, as far as quotas go. */
  get requester(): Requester {
    return (this.#requester ??= {
      credential: this.credential(),
      client: numberOf(this.client),
      address: numberOf(this.holder),
    });
  }

  /** Where it comes from and what it asks for, as far as failures go. */
  get source(): Source {
    return (this.#source ??= sourceOf(
      this.holder,
      this.client,
      this.requester.credential ?? 0,
      this.path(),
      this.salt(),
    ));
  }

  /** As the upstream sees it, without its query; undefined where it is not known. */
  protected path(): string | undefined {
    return undefined;
  }

  /** What makes the numbers of a path another thing to others. */
  protected salt(): string {
    return '';
  }

  /** What it authenticates with, as `numberOf` has it; undefined where that is not known. */
  protected credential(): number | undefined {
    return 0;
  }
}
