import type { SignatureFault } from '../../core/events/event-labels.ts';
import { requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';

/** For the developer of the sender. Nothing in them helps to find a signature: neither a secret nor the expected one. */
const FAULT_TEXTS: Readonly<Record<SignatureFault, string>> = {
  missing: 'The request has no signature, or lacks a header that belongs to it.',
  malformed: 'The signature, or a header that belongs to it, is not in the expected form, or is ambiguous.',
  mismatch: 'The signature does not match. Sign the body byte by byte as it is sent, with the current secret.',
  too_old: 'The signature is too old. Sign each attempt anew, and check the clock.',
  too_new: 'The time of the signature is in the future. Check the clock.',
};

/** RFC 9110 §11.6.1 requires a challenge with a 401. No registered scheme fits, so the header that is missing or wrong is named. */
export function badSignatureProblem(fault: SignatureFault, header: string): Problem {
  return {
    ...requestProblem(401, 'Bad signature', FAULT_TEXTS[fault], 'bad_signature'),
    proxyError: 'http_request_denied',
    challenge: `Webhook-Signature header="${header}"`,
    cause: fault,
  };
}

export const UNVERIFIABLE_BODY = requestProblem(
  413,
  'Content too large',
  'The body is longer than this proxy reads to verify its signature. Nothing was sent to the upstream.',
  'body_too_large',
);
