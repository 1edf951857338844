import type { Millis } from '../../core/scalars.ts';

/** A request that was sent, counted among those of all members. */
export interface SentRequest {
  readonly sentAt: Millis;
  /** The epoch that its member knew. */
  readonly epoch: number;
  /** Requests in flight when it was sent, itself included. */
  readonly inFlightAtSend: number;
  /** Its number among all sends; undefined if that is not known. */
  readonly sendNumber: number | undefined;
}

/** The account of a member, a worker or replica, as far as its reports need it. */
export interface UsageReporter<Member> {
  readonly memberId: Member;
  /** Its tokens that are neither spent nor returned. */
  leasedTokens: number;
  inFlight: number;
  /** Of these, the requests that have no response yet. */
  unanswered: number;
  /** The epoch that it knows. */
  epoch: number;
  recordSend(serial: number, send: SentRequest): void;
  /** Removes and returns a send; undefined if it is unknown, or its outcome was reported before. */
  takeSend(serial: number, sentAt: Millis): SentRequest | undefined;
  findSend(sentAt: Millis): SentRequest | undefined;
  recordEnd(at: Millis): void;
  /** A request has no response yet, or no longer: by how much their number changes. */
  recordUnanswered(change: number, at: Millis): void;
  /** A response whose latency is known. */
  recordLatency(latency: Millis, at: Millis): void;
  /** A request that failed, or was abandoned, after this time. Returns whether that is learned from later. */
  recordFailure(latency: Millis, at: Millis, isAbandoned?: boolean): boolean;
}
