import type { ForwardingListener } from '../response/body-forwarding.ts';
import type { InvalidRequestFailure, SendFailure } from './send-failure.ts';
import type { UpstreamAttempt } from './upstream-attempt.ts';

/** Receives the result of an attempt. */
export interface AttemptListener extends ForwardingListener {
  /** An interim response arrived, 102 to 199 (RFC 9110 §15.2). */
  onInterimResponse(status: number, rawHeaders: string[]): void;
  /**
   * The head arrived. The listener calls `forward` or `discard` of the attempt, before this returns or later; or `holdForPreview`
   * before this returns, and one of the other two later.
   */
  onHead(status: number, reasonPhrase: string, rawHeaders: string[]): void;
  /** No head will arrive. */
  onFailure(failure: SendFailure | InvalidRequestFailure): void;
  /** The forwarded body is complete. @param lastChunk still to be written: the whole body if it arrived with its head */
  onBodyEnd(lastChunk: Buffer | undefined): void;
  /** The upstream cut the forwarded body short. @param cause see `SendFailure.cause` */
  onBodyAborted(cause: string | undefined): void;
  /** The attempt has given up its connection, and needs no other. Called once; the next attempt may be under way. */
  onConnectionReleased(attempt: UpstreamAttempt): void;
}
