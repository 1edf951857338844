import type { Millis } from '../scalars.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type { SendStep } from './steps.ts';

/** What an interpreter does for an exchange. The result of a call goes to the method of `ExchangeDriver` after the arrow. */
export interface ExchangeEffects {
  /** → `onBodyRead`, or `onClientGone` */
  readBody(): void;
  /** → `onClaimed` or `onClaimRefused`, by the deadline at the latest. Called only if the policy `claims`. */
  claim(deadline: Millis): void;
  /** The proxy shuts down: no key is granted any more. → `onClaimRefused` */
  stopClaim(): void;
  /** What is recorded of the write by now. Called only after a claim. → `onKeyKnown` */
  lookUpKey(): void;
  /** → `onOutcome`. Called with no response in hand. */
  send(step: SendStep): void;
  /** The client disconnected: the response is no longer needed. @returns whether a part of the request may have been sent */
  cancelSend(): boolean;
  /** The response in hand will not be forwarded. */
  discardResponse(): void;
  /** → `onWake` */
  sleep(ms: Millis): void;
  cancelSleep(): void;
  /** The gate may have changed: read its `nextWake` again. */
  rearmGateTimer(): void;
  finish(verdict: ExchangeVerdict): void;
}
