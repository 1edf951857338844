import type { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { SendStep } from '../../core/exchange/steps.ts';
import type { KeyClaim } from '../../core/idempotency/key-store.ts';
import type { Millis } from '../../core/scalars.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { Problem } from '../response/problem.ts';
import { KEY_OUTDATED, SendTooLateError, TOO_LATE } from './send-failure.ts';

/** What an upstream call needs of the handler of its request. */
export interface CallOwner {
  /** Receives the outcome of each attempt, and the end of a forwarded body. */
  readonly driver: Pick<ExchangeDriver<never>, 'ticket' | 'onOutcome' | 'onResponseEnd'>;
  /** Ends the request, which is at fault itself. */
  abort(problem: Problem): void;
}

/** What decides, when a connection is available, whether the attempt may still be sent. */
export interface StartCondition extends Pick<SendStep, 'startBy'> {
  /** The claim to the idempotency key of the write; undefined if none was made. */
  readonly claim: Pick<KeyClaim, 'isCurrent'> | undefined;
}

export const AT_ANY_TIME: StartCondition = { startBy: Number.POSITIVE_INFINITY, claim: undefined };

/** @throws SendTooLateError if the attempt may no longer be sent */
export function assertMayStart({ startBy, claim }: StartCondition, now: Millis): void {
  if (now > startBy) throw new SendTooLateError(TOO_LATE);
  if (claim?.isCurrent === false) throw new SendTooLateError(KEY_OUTDATED);
}

/** What an upstream call needs to know for one attempt. */
export interface AttemptOrder extends StartCondition, Pick<SendStep, 'timeout' | 'keyValidUntil'> {
  /** Undefined if the request has none. */
  readonly body: RequestBody | undefined;
  readonly claim: KeyClaim | undefined;
  /** Of the write, in the headers or in the body; undefined if it has none. */
  readonly key: IdempotencyKey | undefined;
  /** The method, or a key that all endpoints know, allows another attempt at any endpoint, whatever the outcome of this one. */
  readonly isRepeatable: boolean;
  /** Label of the only endpoint that it may go to; undefined: any. */
  readonly pinnedTo: string | undefined;
  /** Trace headers of this attempt, names and values in turn; undefined if it is not traced. */
  readonly traceHeaders: readonly string[] | undefined;
}
