import { isThrottled, type AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { firstHeaderValue, withoutHeader } from '../headers/raw-headers.ts';
import { MAX_KEPT_BYTES } from '../idempotency/kept-response.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { NEUTRAL_HEADERS } from './read-key.ts';

/** The whole response to a read, for those that are equal to it. */
export interface SharedResponse {
  /** Of the request that was sent. */
  readonly requestId: string;
  readonly head: ResponseHead;
  readonly body: Buffer;
}

/**
 * Whether the response to a read may be that of equal ones. `not_now`: it says that the upstream is overloaded, or fails, which each
 * request has to find out for itself. `never`: such a response is for one request, or too long to be kept.
 */
export type Shareability = 'yes' | 'not_now' | 'never';

/** @param outcome of the attempt that got the response @param isOfOneUser all reads that are equal to it are */
export function judgeShareability(
  { status, headers }: ResponseHead,
  outcome: AttemptOutcome | undefined,
  isOfOneUser: boolean,
): Shareability {
  if (outcome?.kind !== 'response' || status >= 500 || isThrottled(status, outcome.hints)) return 'not_now';
  if (isEventStream(headers) || firstHeaderValue(headers, 'set-cookie') !== undefined) return 'never';
  if (Number(firstHeaderValue(headers, 'content-length')) > MAX_KEPT_BYTES) return 'never';
  if (!isOfOneUser && isPrivate(headers)) return 'never';
  return variesByNeutralHeader(headers) ? 'never' : 'yes';
}

/** RFC 9111 §5.2.2.7: for one user. */
function isPrivate(headers: readonly string[]): boolean {
  return listOf(headers, 'cache-control').some((directive) => /^private(?:$|[\t ]*=)/.test(directive));
}

/** The elements of a list field, in lower case. */
function listOf(headers: readonly string[], name: string): string[] {
  const values = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name);
  return parseListField(values.join(',').toLowerCase());
}

/** All other headers are equal. */
function variesByNeutralHeader(headers: readonly string[]): boolean {
  return listOf(headers, 'vary').some((field) => field === '*' || NEUTRAL_HEADERS.has(field));
}

/** Returns the head as an equal read gets it: framed by its length. @param method of the request */
export function headOfShared({ head, body }: SharedResponse, method: string): ResponseHead {
  if (method === 'HEAD' || head.status === 204 || head.status === 304) return head;
  const headers = [...withoutHeader([...head.headers], 'content-length'), 'Content-Length', String(body.length)];
  return { ...head, headers };
}
