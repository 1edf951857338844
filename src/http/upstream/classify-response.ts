/** What a response means: for the rate, by its headers and the `throttle` rules, and for the write that it answers. */
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import { readHints } from '../../core/hints/read-hints.ts';
import { firstHeaderValue, outcomeMarks } from '../headers/raw-headers.ts';
import { mayCarryRetryAfter, addImpliedWait } from '../headers/retry-after-header.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { upstreamPath } from '../request/router.ts';
import { pollPolicyFor } from '../response/client-polling.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { BodyPreview } from './body-preview.ts';
import { readErrorCodes } from './error-codes.ts';
import type { ThrottleRules } from './throttle-rules.ts';

/**
 * Classifies a response by its status and headers, or by its body if the `throttle` rules of the upstream name codes in it.
 * @param onClassified called once: before this returns, or at the end of the preview
 * @returns the preview that has to be filled with the body, if there is one
 */
export function classifyHead(
  routed: RoutedRequest,
  head: Pick<ResponseHead, 'status' | 'headers'>,
  onClassified: (hints: Hints) => void,
): BodyPreview | undefined {
  const { status, headers } = head;
  const hints = readResponseHints(routed, head);
  const { throttle } = routed.route.target;
  const classified = throttle?.appliesTo(status, hints) === true ? readThrottling(routed, head, hints) : hints;
  if (throttle !== undefined && classified === undefined) {
    return new BodyPreview((body, isComplete) => {
      const codes = isComplete ? codesIn(body, headers, throttle) : [];
      onClassified(readThrottling(routed, head, hints, codes) ?? hints);
    });
  }
  onClassified(classified ?? hints);
  return undefined;
}

/** Hints of a response that is not ready are read as those of a 202, whatever its status: they say when to poll again. */
function readResponseHints(
  routed: RoutedRequest,
  { status, headers }: Pick<ResponseHead, 'status' | 'headers'>,
): Hints {
  const isNotReady = pollPolicyFor(routed)?.notReady.has(status) === true;
  return readHints(isNotReady ? 202 : status, headers, Date.now());
}

/** Undefined if the body must be read to decide. @param codes error codes in the body; undefined if it was not read */
function readThrottling(
  { request, route }: RoutedRequest,
  { status, headers }: Pick<ResponseHead, 'status' | 'headers'>,
  hints: Hints,
  codes?: readonly string[],
): Hints | undefined {
  const path = upstreamPath(request.target, route);
  return route.target.throttle?.classify({ method: request.verb, path, status, headers }, hints, codes, Date.now());
}

/** The error codes in a complete body. */
function codesIn(body: Buffer, headers: string[], { codeFields }: ThrottleRules): readonly string[] {
  return readErrorCodes(body, firstHeaderValue(headers, 'content-encoding') ?? '', codeFields);
}

export function toOutcome(
  { request, route }: RoutedRequest,
  status: number,
  headers: string[],
  hints: Hints,
  took: Millis,
): AttemptOutcome {
  const { replayedHeader } = route.target.idempotency;
  const marks = isSafeMethod(request.verb) ? undefined : outcomeMarks(headers, replayedHeader);
  const outcome: AttemptOutcome = { kind: 'response', status, hints, took, ...marks };
  return mayCarryRetryAfter(status) ? addImpliedWait(outcome, headers, Date.now()) : outcome;
}
