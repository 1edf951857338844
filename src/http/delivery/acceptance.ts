import type { NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import type { Problem } from '../response/problem.ts';

/** What a route stores of a request, besides its message. */
export interface AcceptedFields extends Pick<NewDelivery, 'kind' | 'eventId' | 'orderKey'> {
  /** How long its event id is remembered. */
  readonly deduplicateFor: number;
  /** As they are stored, names and values in turn. */
  readonly headers: readonly string[];
}

/** A request that has just been stored, or a duplicate of one that was stored before. */
export interface AcceptedRequest {
  /** The id of its delivery. */
  readonly id: string;
  readonly delivery: NewDelivery;
  readonly isDuplicate: boolean;
}

/** The response to it, without a `Location`. */
export interface AcceptanceReply {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string | undefined;
}

/** How a route accepts requests that are stored and sent later. */
export interface Acceptance {
  readonly bodyTooLarge: Problem;
  /**
   * Describes what the store keeps of a request. Returns a problem if the request is rejected.
   * @param key its idempotency key
   */
  describe(body: Buffer, key: IdempotencyKey | undefined): AcceptedFields | Problem;
  /** @param onReply called once, at once or later */
  reply(accepted: AcceptedRequest, onReply: (reply: AcceptanceReply | Problem) => void): void;
}

export function isProblem(result: object): result is Problem {
  return 'proxyError' in result;
}
