/**
 * The life of a check, as `exchange` is that of a request: somebody asks whether a request may pass, and sends it himself.
 *
 *     admit ──► grant: it passes
 *       │
 *       └─► refuse
 *
 * It says of a request what `exchange` would have said before its first attempt. What came of it afterwards, only who sent
 * it knows: see `Gate.report`.
 */
import type { Script } from './steps.ts';
import { expect } from './steps.ts';
import type { Millis } from './attempt-outcome.ts';

const PASSES = { kind: 'forward', unknown: false, attempts: 0, retryEnd: undefined } as const;
const GONE = { kind: 'gone', unknown: false, attempts: 0, retryEnd: undefined } as const;

/** @param deadline until when it may wait for its turn */
export function* check(deadline: Millis): Script {
  const admission = yield { do: 'admit', deadline };
  if (admission.kind === 'gone') return GONE;
  if (admission.kind === 'refused') {
    const { why, retryAfter } = admission;
    // We go away, and who asks stays: its requests are not to fail for that.
    if (why === 'draining') return PASSES;
    return { kind: 'refuse', why, retryAfter, attempts: 0, retryEnd: undefined };
  }
  expect('admitted', admission);
  // Of one that would have been turned away, no token was taken; it is sent all the same.
  expect('granted', yield { do: 'grant' });
  return PASSES;
}
