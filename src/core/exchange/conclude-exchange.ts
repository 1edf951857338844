/**
 * How an exchange ends: the verdicts, and the rule behind them. Before anything is reported as if the write had no effect,
 * the key's record is read again, because another exchange with the key may have changed it meanwhile.
 */
import type { RefusalReason } from '../admission/gate-decision.ts';
import type { KeptResponseMatch } from '../idempotency/key-record.ts';
import type { WriteHistory } from '../idempotency/write-history.ts';
import { classifyWrite, mayHaveTakenEffect } from '../idempotency/write-outcome.ts';
import { hintedDelay } from '../retry/hinted-delay.ts';
import type { RetryOutcome } from '../retry/retry-policy.ts';
import type { Millis } from '../scalars.ts';
import { isThrottled, type AttemptOutcome } from './attempt-outcome.ts';
import type { ExchangeState } from './exchange-state.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import {
  expectResult,
  type ExchangeGenerator,
  type ExchangeStep,
  type KeyClaimRefused,
  type StepResult,
} from './steps.ts';

/** The shortest Retry-After, for a wait of unknown length: for another request with the key, or for a restart. */
export const DEFAULT_RETRY_AFTER: Millis = 1000;

/**
 * Forwards a response that is conclusive by itself, without reading the key's record again.
 * @returns undefined for an error, and for a response that describes only its own attempt of a write
 */
export function forwardIfConclusive(
  { request, isWrite, policy, attempts }: ExchangeState,
  outcome: AttemptOutcome,
  retryOutcome: RetryOutcome | undefined,
): ExchangeVerdict | undefined {
  if (outcome.kind === 'error') return undefined;
  if (!isWrite) return { kind: 'forward', unknown: false, attempts, retryOutcome };
  const meaning = classifyWrite(request, outcome, policy.retry.notProcessed);
  if (meaning !== 'may_have_taken_effect' && meaning !== 'answered') return undefined;
  return { kind: 'forward', unknown: meaning === 'may_have_taken_effect', attempts, retryOutcome };
}

/** Ends with the last outcome: forwards its response, or reports a failure or an unknown outcome. */
export function* conclude(
  state: ExchangeState,
  outcome: AttemptOutcome,
  retryOutcome?: RetryOutcome,
): ExchangeGenerator {
  const { request, policy, attempts } = state;
  if (outcome.kind === 'error') {
    const isUnknown = mayHaveTakenEffect(request, outcome) || (yield* historyByNow(state)).isUnconfirmed;
    return { kind: isUnknown ? 'unknown' : 'fail', reason: outcome.reason, attempts, retryOutcome };
  }
  const verdict = forwardIfConclusive(state, outcome, retryOutcome);
  if (verdict !== undefined) return verdict;
  // A rejection describes only its own attempt, whichever hop sent it; a 409, the attempt that is still in progress.
  const { mayHaveTakenEffect: isUnknown } = yield* historyByNow(state);
  if (!isUnknown) return { kind: 'forward', unknown: false, attempts, retryOutcome };
  const meaning = classifyWrite(request, outcome, policy.retry.notProcessed);
  const rejection = meaning === 'not_processed' ? meaning : 'rejected';
  const reason = isThrottled(outcome.status, outcome.hints) ? 'throttled' : rejection;
  return { kind: 'unknown', reason, status: outcome.status, attempts, retryOutcome };
}

/** Ends because the gate refused the request, or because the proxy shuts down before its retry. */
export function* refuse(state: ExchangeState, why: RefusalReason, retryAfterMs: Millis): ExchangeGenerator {
  const { attempts } = state;
  const retryOutcome = state.isRetrying ? 'deadline' : undefined;
  if ((yield* historyByNow(state)).isUnconfirmed) return { kind: 'unknown', reason: why, attempts, retryOutcome };
  return { kind: 'refuse', why, retryAfterMs, attempts, retryOutcome };
}

/**
 * When to repeat a request whose wait for a retry ends because the proxy shuts down, in whole seconds. At another instance the
 * upstream's own Retry-After still applies; a delay of our backoff and what we added to theirs do not.
 * @param elapsed since the response arrived
 */
export function retryAfterDrain(outcome: AttemptOutcome, elapsed: Millis): Millis {
  const hinted = outcome.kind === 'response' ? hintedDelay(outcome.hints) : undefined;
  if (hinted === undefined) return DEFAULT_RETRY_AFTER;
  return Math.max(DEFAULT_RETRY_AFTER, 1000 * Math.ceil((hinted - elapsed) / 1000));
}

/** Ends before the first attempt: the key was not granted. */
export function refuseClaim(
  { attempts }: ExchangeState,
  { why, mayHaveTakenEffect }: KeyClaimRefused,
): ExchangeVerdict {
  const end = { attempts, retryOutcome: undefined };
  if (why !== 'key_in_use' && mayHaveTakenEffect) return { kind: 'unknown', reason: why, ...end };
  if (why === 'key_ambiguous') return { kind: 'refuse', why, retryAfterMs: undefined, ...end };
  return { kind: 'refuse', why, retryAfterMs: DEFAULT_RETRY_AFTER, ...end };
}

/** Ends before an attempt: this process was stopped for so long that another one gave the key to its own request. */
export function refuseTakenKey({ attempts, isRetrying }: ExchangeState): ExchangeVerdict {
  const retryOutcome = isRetrying ? 'deadline' : undefined;
  return { kind: 'refuse', why: 'key_in_use', retryAfterMs: DEFAULT_RETRY_AFTER, attempts, retryOutcome };
}

/** Ends before an attempt: another process may have given the key to its own request, and the store does not say so. */
export function refuseUncheckedKey({ attempts, isRetrying }: ExchangeState): ExchangeVerdict {
  return { kind: 'unknown', reason: 'key_store_lost', attempts, retryOutcome: isRetrying ? 'deadline' : undefined };
}

/** Ends because the upstream no longer remembers the key: sent again, the write would be another one. */
export function* concludeExpiredKey(state: ExchangeState): ExchangeGenerator {
  yield* refreshKeyRecord(state);
  const { history } = state;
  const end = { attempts: state.attempts, retryOutcome: state.isRetrying ? 'key_expired' : undefined } as const;
  if (history.isUnconfirmed) return { kind: 'unknown', reason: 'key_expired', ...end };
  if (history.wasAnswered) return { kind: 'refuse', why: 'key_expired', retryAfterMs: undefined, ...end };
  return { kind: 'refuse', why: 'queue_timeout', retryAfterMs: DEFAULT_RETRY_AFTER, ...end };
}

/** Ends with what is kept of an earlier response to the write; undefined if nothing is kept. */
export function concludeRepeat(
  { attempts, history }: ExchangeState,
  response: KeptResponseMatch = 'none',
): ExchangeVerdict | undefined {
  const end = { attempts, retryOutcome: undefined };
  switch (response) {
    case 'none':
      return undefined;
    case 'kept':
      return { kind: 'replay', unknown: history.isUnconfirmed, ...end };
    case 'other_request':
      // Its response is kept, and nobody has it yet.
      if (history.isUnconfirmed) return { kind: 'unknown', reason: 'key_reused', ...end };
      return { kind: 'refuse', why: 'key_reused', retryAfterMs: undefined, ...end };
  }
}

export function clientGone({ history, attempts, isRetrying }: ExchangeState): ExchangeVerdict {
  const retryOutcome = isRetrying ? 'client_gone' : undefined;
  return { kind: 'gone', unknown: history.isOwnUnresolved, attempts, retryOutcome };
}

/** Reads what other exchanges with the same key have recorded by now. Without a client, the verdict reaches nobody. */
function* refreshKeyRecord({ hasClaimedKey, history }: ExchangeState): Generator<ExchangeStep, void, StepResult> {
  if (!hasClaimedKey) return;
  const known = yield { do: 'look' };
  if (known.kind !== 'gone') history.setEarlierRecord(expectResult('known', known).record);
}

/** What is known of the write by now, from this exchange and from others with its key. */
function* historyByNow(state: ExchangeState): Generator<ExchangeStep, WriteHistory, StepResult> {
  if (!state.history.isOwnUnresolved) yield* refreshKeyRecord(state);
  return state.history;
}
