import { listElements } from '../../core/http-semantics/list-field.ts';

/** What a request expects before its body is sent: `other` is anything that is not understood here. */
export type Expectation = 'nothing' | 'continue' | 'other';

/** The members of `Expect` (RFC 9110 §10.1.1), whose only one defined is `100-continue`. */
export function readExpectation(expect: string | undefined): Expectation {
  const members = listElements(expect?.toLowerCase());
  if (members.length === 0) return 'nothing';
  return members.every((member) => member === '100-continue') ? 'continue' : 'other';
}
