import type { KeyOwner } from '../idempotency/key-owner.ts';
import type { Millis } from '../scalars.ts';

/**
 * A request that Tidegate stores, answers, and sends later, as often as its schedule allows, until the upstream acknowledges it. All
 * times are on the wall clock, because they outlive a process.
 */
export interface Delivery {
  /** Unique among all processes that share a store, and in the order of acceptance: a UUID of version 7 (RFC 9562). */
  readonly id: string;
  readonly kind: DeliveryKind;
  /** The name of its route. It is sent by the rules that this route has when it is sent. */
  readonly route: string;
  readonly upstream: string;
  readonly acceptedAt: Millis;
  /** Hash of the client that sent it. Only that client may read its status. */
  readonly owner: string;
  /** The group of its owner, which shares the places of a route and the room of the store with others: its address, or itself. */
  readonly sender: string;
  /** The sender's id of the event. A second request of the route with the same id is a duplicate. */
  readonly eventId: string | undefined;
  /** Deliveries of a route with the same key are sent one after the other, in the order of acceptance. */
  readonly orderKey: string | undefined;
  readonly state: DeliveryState;
  /** Completed ones of its present schedule. */
  readonly attempts: number;
  /** When the first of them began; undefined before it has ended. */
  readonly startedAt: Millis | undefined;
  readonly lastAttempt: DeliveryAttempt | undefined;
}

/** `message`: sent until the upstream acknowledges it. `write`: sent until its outcome is known, which its client reads later. */
export type DeliveryKind = 'message' | 'write';

export type DeliveryState =
  /** An attempt begins at this time or later. */
  | { readonly kind: 'waiting'; readonly until: Millis }
  | { readonly kind: 'sending'; readonly since: Millis }
  | { readonly kind: DeliveryEnd; readonly at: Millis };

/**
 * `delivered`: the upstream has acknowledged a message, or decided about a write. `dead`: its schedule is used up; a write has not taken
 * effect. `canceled`: by an operator. `unknown`: a write may have taken effect, and cannot be sent again to find out.
 */
export type DeliveryEnd = 'delivered' | 'dead' | 'canceled' | 'unknown';

/** How an attempt ended. */
export interface DeliveryAttempt {
  readonly at: Millis;
  readonly took: Millis;
  /** Of the response; undefined if there was none. */
  readonly status: number | undefined;
  /** Why it did not acknowledge the delivery: a reason such as `connect`, `throttled`, `not_acknowledged`; undefined if it did. */
  readonly reason: string | undefined;
}

/** What is sent: encrypted in a store. */
export interface DeliveryMessage {
  readonly method: string;
  /** As the client sent it. */
  readonly target: string;
  /** Names and values in turn, Host among them. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The address of the peer that sent it. */
  readonly peer: string;
  /** What named its client when it was accepted, if its upstream had accounts; undefined if nothing did. It is never looked up again. */
  readonly keyOwner?: KeyOwner | undefined;
  /** The key that was derived for the upstream (http/idempotency/upstream-key.ts); undefined if it gets the one in the headers. */
  readonly upstreamKey?: string | undefined;
}

/** The response that ended a delivery: encrypted in a store, and kept as long as the delivery. */
export interface DeliveryResult {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Undefined: longer than what is kept. */
  readonly body: Buffer | undefined;
}
