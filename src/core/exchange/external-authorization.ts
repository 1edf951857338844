/**
 * The life of a check: an ingress asks whether a request may pass, and sends the request itself.
 *
 *     admit ──► grant: the request passes
 *       │
 *       └─► refuse
 *
 * The decision is the one that `exchange` would make before its first attempt. Only the ingress knows the outcome of
 * the request; its report goes to `Gate.onExternalOutcome`.
 */
import type { Millis } from '../scalars.ts';
import { expectResult, type ExchangeGenerator } from './steps.ts';

const ALLOW_VERDICT = { kind: 'forward', unknown: false, attempts: 0, retryOutcome: undefined } as const;
const GONE_VERDICT = { kind: 'gone', unknown: false, attempts: 0, retryOutcome: undefined } as const;

/** @param deadline until which the request may wait in the queue */
export function* runAuthorizationCheck(deadline: Millis): ExchangeGenerator {
  const admission = yield { do: 'admit', deadline };
  if (admission.kind === 'gone') return GONE_VERDICT;
  if (admission.kind === 'refused') {
    const { why, retryAfterMs } = admission;
    // This process shuts down and the ingress does not: the requests of the ingress must not fail because of that.
    if (why === 'draining') return ALLOW_VERDICT;
    return { kind: 'refuse', why, retryAfterMs, attempts: 0, retryOutcome: undefined };
  }
  expectResult('admitted', admission);
  // In observe mode this includes a request that would have been refused: it took no token, but it is sent.
  expectResult('granted', yield { do: 'grant' });
  return ALLOW_VERDICT;
}
