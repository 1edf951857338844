import type { Millis, Verdict } from '../policy/types.ts';

/** What an interpreter does for an exchange. Each call but the last is answered by the method of `Drive` it names. */
export interface Effects {
  /** → `bodyRead`, or `gone` */
  readBody(): void;
  /** → `claimed`, by the deadline at the latest. Not asked for where no plan `claims`. */
  claim(deadline: Millis): void;
  cancelClaim(): void;
  /** → `settled`. Called with no response in hand. */
  send(attempt: number, timeout: Millis): void;
  /** The client went away: no answer is wanted any more. */
  cancelSend(): void;
  /** The response in hand will not be forwarded. */
  discard(): void;
  /** → `woke` */
  sleep(ms: Millis): void;
  cancelSleep(): void;
  /** Something may have changed in the gate: look at its `nextWake`. */
  rearm(): void;
  finish(verdict: Verdict): void;
}
