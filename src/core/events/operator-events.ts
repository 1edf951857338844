import type { Millis, PerSecond } from '../scalars.ts';

/** What an operator can do. */
export type OperatorAction =
  | { readonly action: 'pin'; readonly upstream: string; readonly rate: PerSecond }
  | { readonly action: 'unpin' | 'unblock'; readonly upstream: string }
  /** For `time`, or until it is unblocked. */
  | { readonly action: 'block'; readonly upstream: string; readonly time: Millis | undefined }
  | { readonly action: 'reset'; readonly client: string }
  /** `write`: the id of a write with an idempotency key. `upstream`: undefined if the store has not responded. */
  | { readonly action: 'forget'; readonly upstream: string | undefined; readonly write: string }
  /** `delivery`: the id of a delivery of the route. */
  | {
      readonly action: 'retry' | 'cancel';
      readonly upstream: string;
      readonly route: string;
      readonly delivery: string;
    }
  | { readonly action: 'drain' };

/** A command of an operator. `by`: where it came from. */
export type OperatorEvent = { readonly type: 'operator'; readonly by: string } & OperatorAction;

/** The state of what an action is about: its fields are those of the admin API, by upstream if several are concerned. */
export interface AuditedState {
  readonly [field: string]: string | number | boolean | null | AuditedState;
}

/**
 * `unconfirmed`: the command has been sent, and not every process, or not the store, has confirmed it. It may have taken effect, or
 * may still do so.
 */
export type ActionOutcome = 'done' | 'unconfirmed';

/** A command of an operator has been carried out, or sent to those who carry it out. */
export interface OperatorAuditEvent {
  readonly type: 'operator-audit';
  readonly by: string;
  readonly action: OperatorAction;
  readonly outcome: ActionOutcome;
  /** Undefined if it is unknown. */
  readonly before: AuditedState | undefined;
  /** Undefined if it is unknown, or if what it was about is gone. */
  readonly after: AuditedState | undefined;
}
