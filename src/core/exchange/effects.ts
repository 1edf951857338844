import type { KeyRecord, Millis, Verdict } from './attempt-outcome.ts';
import type { SendStep } from './steps.ts';

/** What an interpreter does for an exchange. Each call but the last is answered by the method of `Drive` it names. */
export interface Effects {
  /** → `bodyRead`, or `gone` */
  readBody(): void;
  /** → `claimed` or `unclaimed`, by the deadline at the latest. Not asked for where no plan `claims`. */
  claim(deadline: Millis): void;
  /** @returns whether the request that has the key may have its write done */
  cancelClaim(): boolean;
  /** What is known by now of others' part in its write. Not asked for where nothing was claimed. */
  lookUp(): KeyRecord | undefined;
  /** → `settled`. Called with no response in hand. */
  send(step: SendStep): void;
  /** The client went away: no answer is wanted any more. @returns whether the upstream may have all of the request */
  cancelSend(): boolean;
  /** The response in hand will not be forwarded. */
  discard(): void;
  /** → `woke` */
  sleep(ms: Millis): void;
  cancelSleep(): void;
  /** Something may have changed in the gate: look at its `nextWake`. */
  rearm(): void;
  finish(verdict: Verdict): void;
}
