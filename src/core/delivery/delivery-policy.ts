import type { Millis } from '../scalars.ts';
import type { Acknowledgement } from './acknowledgement.ts';
import type { DeliverySchedule } from './delivery-schedule.ts';

/** How a route delivers. Compiled from the configuration; immutable. Each delivery follows the present policy of its route. */
export interface DeliveryPolicy {
  readonly schedule: DeliverySchedule;
  readonly acknowledgement: Acknowledgement;
  readonly respond: AcceptanceResponse;
  /** Where a message has the sender's id of its event; undefined: no message is a duplicate. */
  readonly eventId: MessageField | undefined;
  /** Messages with the same value are delivered one at a time, in the order of acceptance; undefined: all at once. */
  readonly orderBy: MessageField | undefined;
  /** How long the id of an event is remembered, from its acceptance on. */
  readonly deduplicateFor: Millis;
  /** The longest message body that is accepted, in bytes. */
  readonly maxBody: number;
  /** Maximum of deliveries of the route that are sent at a time, ≥ 1. */
  readonly concurrency: number;
  /** Each attempt is signed with each of them; undefined: only the signature of the sender is sent. */
  readonly signingKeys: readonly Buffer[] | undefined;
  /** How long a delivery is kept after it has ended. */
  readonly keepFor: {
    /** Also of canceled ones. */
    readonly delivered: Millis;
    readonly dead: Millis;
  };
}

/** The response to a message that is stored, and to a duplicate of it. */
export interface AcceptanceResponse {
  /** 2xx. */
  readonly status: number;
  /** Undefined: none. */
  readonly body: string | undefined;
  /** Of the body. */
  readonly contentType: string;
}

/** A part of a message: the value of a header (its name in lower case), or of a field of a JSON body. */
export type MessageField =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'json'; readonly path: readonly string[] };
