import { trimSpace } from '../../core/http-semantics/list-field.ts';
import { isListedInConnection } from '../headers/forward-headers.ts';

/** The header occurs in a form that the upstream may read as another value. */
export const AMBIGUOUS = Symbol('ambiguous header');

/**
 * The value of a header that a signature depends on; undefined if it is absent. Ambiguous: more than one line, a name with
 * underscores (the same header for upstreams that follow CGI), or a header for this hop only, which the upstream does not get.
 * @param lower its name in lower case
 */
export function readSignedHeader(rawHeaders: readonly string[], lower: string): string | typeof AMBIGUOUS | undefined {
  const dashed = lower.replaceAll('_', '-');
  let value: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== lower.length || name.toLowerCase().replaceAll('_', '-') !== dashed) continue;
    if (value !== undefined || name.toLowerCase() !== lower) return AMBIGUOUS;
    value = trimSpace(rawHeaders[i + 1] ?? '');
  }
  return value !== undefined && isListedInConnection(rawHeaders, lower) ? AMBIGUOUS : value;
}
