import { parseListField } from '../../core/http-semantics/list-field.ts';

/** The expectation of a request; `other`: an unsupported one. */
export type Expectation = 'nothing' | 'continue' | 'other';

/** Parses `Expect` (RFC 9110 §10.1.1); its only defined member is `100-continue`. */
export function parseExpect(expect: string | undefined): Expectation {
  const members = parseListField(expect?.toLowerCase());
  if (members.length === 0) return 'nothing';
  return members.every((member) => member === '100-continue') ? 'continue' : 'other';
}
