/**
 * The life of a request, as one pure generator. It yields steps and receives their results; it uses no clock, socket or
 * timer. The proxy runs it over sockets, the simulator in virtual time. The gate applies and updates the limits.
 *
 *     body ─► claim ─► join ─► admit ─► send ─► settled? ──yes──► forward
 *               │        │      ▲  │              │ no
 *               │        │ wait │  └─► refuse     ▼
 *               │        │      └──────────── reserve ──no──► forward the response in hand, or report an unknown outcome
 *               │        └─► send the response to an equal read
 *               └─► refuse, or replay a kept response
 *
 * - Only a write with an idempotency key claims it: one request at a time holds a key.
 * - Only a read of a route that coalesces joins others. It never gets a response to a request that was sent before it arrived.
 * - With `Expect: 100-continue` the body is read after admission, so a refusal costs no upload.
 * - A retry is reserved while the response before it is still in hand: neither forwarded nor discarded. If the retry cannot be
 *   sent before the deadline, that response is forwarded.
 * - A write whose connection is ready so late that another process may have its key is not sent. It is admitted, and its key is
 *   looked up, again.
 * - In observe mode every request is admitted, no key is claimed and no read is joined. A retry that could be reserved is reported, not made.
 */
import { chooseRetry } from '../retry/choose-retry.ts';
import type { Millis, Random } from '../scalars.ts';
import { isThrottled, type AttemptOutcome } from './attempt-outcome.ts';
import {
  clientGone,
  conclude,
  concludeExpiredKey,
  concludeRepeat,
  forwardIfConclusive,
  refuse,
  refuseClaim,
  refuseTakenKey,
  refuseUncheckedKey,
  retryAfterDrain,
} from './conclude-exchange.ts';
import { ExchangeState } from './exchange-state.ts';
import type { RequestFacts } from './request-facts.ts';
import { expectResult, type ExchangeGenerator, type RoutePolicy } from './steps.ts';

const unknownTime = (): Millis => 0;

/**
 * @param arrivedAt when the head of the request had been read
 * @param expectedTime how long the upstream takes to respond; 0 while not known, or if it does not matter
 * @param clientTimeout see `ClientTimeouts`; Infinity if it is not known
 */
export function* exchange(
  facts: RequestFacts,
  policy: RoutePolicy,
  random: Random,
  arrivedAt: Millis,
  expectedTime: () => Millis = unknownTime,
  clientTimeout?: Millis,
): ExchangeGenerator {
  const state = new ExchangeState(facts, policy, arrivedAt, expectedTime, clientTimeout);

  if (!facts.expectsContinue) {
    const read = yield { do: 'body' };
    if (read.kind === 'gone') return clientGone(state);
    state.onBodyRead(expectResult('body', read));
  }

  if (state.needsKeyClaim) {
    const claim = yield { do: 'claim', deadline: state.claimBy() };
    if (claim.kind === 'gone') return clientGone(state);
    if (claim.kind === 'unclaimed') return refuseClaim(state, claim);
    const { record, hasWaited, response, at } = expectResult('claimed', claim);
    state.onKeyClaimed(record, hasWaited);
    const repeated = concludeRepeat(state, response);
    if (repeated !== undefined) return repeated;
    if (at > state.keyValidUntil()) return yield* concludeExpiredKey(state);
  }

  if (policy.coalesces === true && isRead(facts)) {
    const joined = yield { do: 'join', deadline: state.joinBy() };
    if (joined.kind === 'gone') return clientGone(state);
    if (joined.kind === 'refused') return yield* refuse(state, joined.why, joined.retryAfterMs);
    if (expectResult('joined', joined).hasResponse) return { kind: 'share', attempts: 0, retryOutcome: undefined };
  }

  for (;;) {
    const admission = yield { do: 'admit', deadline: state.sendBy(), clientTimeout: state.clientTimeout };
    if (admission.kind === 'gone') return clientGone(state);
    if (admission.kind === 'refused') {
      if (admission.at >= state.keyValidUntil()) return yield* concludeExpiredKey(state);
      return yield* refuse(state, admission.why, admission.retryAfterMs);
    }
    const { at: admittedAt, wouldHave } = expectResult('admitted', admission);

    let sendAt = admittedAt;
    if (!state.isBodyRead) {
      const read = yield { do: 'body' };
      if (read.kind === 'gone') return clientGone(state);
      state.onBodyReadAfterAdmission(expectResult('body', read), admittedAt);
      sendAt = read.at;
    }

    // With `concurrent: pass`, from the start or since a reload, or after the end of a lease, others may have sent the same write.
    if (state.hasClaimedKey) {
      const known = yield { do: 'look' };
      if (known.kind === 'gone') return clientGone(state);
      const { record, at } = expectResult('known', known);
      state.history.setEarlierRecord(record);
      if (record?.isInUse === true) return refuseTakenKey(state);
      if (record?.isInDoubt === true) return refuseUncheckedKey(state);
      sendAt = at;
    }
    if (sendAt > state.keyValidUntil()) return yield* concludeExpiredKey(state);

    const send = state.nextSend(sendAt);
    const { outcome, otherAccount, at: answeredAt } = expectResult('sent', yield send);
    const progress = state.onOutcome(outcome, sendAt, answeredAt, otherAccount);
    if (outcome.kind === 'error') {
      if (outcome.reason === 'aborted') return clientGone(state);
      if (!outcome.sent && answeredAt > send.keyValidUntil) return yield* concludeExpiredKey(state);
      if (state.mayResend(outcome)) continue;
    }
    // Observe mode: enforce mode would have refused the request, and there would be no response to retry.
    if (wouldHave?.decision === 'refused') return yield* conclude(state, outcome);

    const choice = chooseRetry(state.request, policy.retry, outcome, progress, random);
    if (choice.kind === 'settled') {
      const retryOutcome = state.isRetrying && isRecovery(outcome) ? 'success' : undefined;
      // Nearly every request ends here, so no second generator is created.
      return forwardIfConclusive(state, outcome, retryOutcome) ?? (yield* conclude(state, outcome, retryOutcome));
    }
    if (choice.kind === 'stop') return yield* conclude(state, outcome, choice.why);

    const { retry } = choice;
    const reservation = yield {
      do: 'reserve',
      retry,
      deadline: state.sendBy(),
      attemptTime: state.minAttemptTime(),
      clientTimeout: state.clientTimeout,
    };
    if (reservation.kind === 'denied') return yield* conclude(state, outcome, reservation.why);
    const { at: reservedAt } = expectResult('reserved', reservation);
    if (policy.mode === 'observe') return { ...(yield* conclude(state, outcome)), wouldRetry: retry.reason };
    state.onRetryReserved(retry);

    const wait = yield { do: 'wait', ms: retry.delay };
    if (wait.kind === 'gone') return clientGone(state);
    if (wait.kind === 'draining') {
      return yield* refuse(state, 'draining', retryAfterDrain(outcome, wait.at - reservedAt));
    }
    expectResult('waited', wait);
  }
}

/** It has no effect, and its response depends on its head alone, unlike that of a POST that only reads. */
function isRead({ method, expectsContinue, replaySafety }: RequestFacts): boolean {
  return (method === 'GET' || method === 'HEAD') && !expectsContinue && replaySafety !== 'never';
}

/** Request timeout, too early. */
const TEMPORARY_REJECTIONS: ReadonlySet<number> = new Set([408, 425]);

/** True if a retry got a definite response of the upstream, success or error, rather than one more failure. */
function isRecovery(outcome: AttemptOutcome): boolean {
  if (outcome.kind === 'error' || outcome.status >= 500) return false;
  return (
    outcome.status !== 429 && !TEMPORARY_REJECTIONS.has(outcome.status) && !isThrottled(outcome.status, outcome.hints)
  );
}
