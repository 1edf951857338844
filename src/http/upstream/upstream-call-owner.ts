import type { CutReason } from '../../core/events/proxy-events.ts';
import type { Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Trace } from '../../core/exchange/exchange-observer.ts';

/** Who has a request sent. */
export interface Sender {
  /** The trace that it is a part of, where we trace. */
  readonly trace: Trace | undefined;
  /** One goes to this endpoint, as metrics call it. */
  onSending(endpoint: string): void;
  /** What the send came to: a head, which is in hand until it is forwarded or discarded, or a failure. */
  onOutcome(outcome: Outcome): void;
  /** The HTTP client refuses to write this request: a fault of the request, and no word on the upstream. */
  onUnsendable(detail: string): void;
  /** The forwarded body has come to its end. @param rest of it that is still to be written */
  onEnd(rest: Buffer | undefined): void;
  /** The upstream cut the forwarded body short, or paused for too long; or its client does not read it, which `why` says. */
  onBroken(why?: CutReason): void;
}
