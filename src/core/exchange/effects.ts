import type { Millis } from '../scalars.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type { ExchangeStep, SendStep } from './steps.ts';

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
  /**
   * Waits for the response to an equal read, or has others wait for that of this one. Called only if the policy `coalesces`.
   * → `onJoined`, by the deadline at the latest
   */
  join(deadline: Millis): void;
  /** Waits no longer for an equal read. → nothing */
  leave(): void;
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

/** Begins a step that neither the gate nor the time decides. */
export function beginStep(
  step: Extract<ExchangeStep, { readonly do: 'body' | 'claim' | 'join' | 'look' }>,
  effects: ExchangeEffects,
): void {
  switch (step.do) {
    case 'body':
      return effects.readBody();
    case 'claim':
      return effects.claim(step.deadline);
    case 'join':
      return effects.join(step.deadline);
    case 'look':
      return effects.lookUpKey();
  }
}
