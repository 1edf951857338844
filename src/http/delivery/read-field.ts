import { createHash } from 'node:crypto';
import type { MessageField } from '../../core/delivery/delivery-policy.ts';
import { readJsonScalar } from '../../core/http-semantics/json-field.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/** A longer value is replaced by its digest: senders choose these values, and each is stored and listed as it is. */
const MAX_LENGTH = 256;
const DIGEST = 'sha256:';

/** Values of a JSON body that are no strings begin with it, so that `77` and `"77"` are two ids. */
const OTHER_TYPE = 'json:';

/** Reads a header or a field of a JSON body; undefined if the request has none, or an empty one. */
export function readField(
  field: MessageField | undefined,
  { headers }: Pick<HttpServerRequest, 'headers'>,
  body: Buffer,
): string | undefined {
  if (field === undefined) return undefined;
  const value = field.kind === 'json' ? readJsonScalar(body, field.path) : headers[field.name];
  // Other numbers are not exact: two ids could be equal.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? `${OTHER_TYPE}${value}` : undefined;
  if (typeof value === 'boolean') return `${OTHER_TYPE}${value}`;
  const text = value === undefined ? '' : String(value);
  // Without a whole character in place of each half of a pair, two ids could be equal.
  if (text === '' || !text.isWellFormed()) return undefined;
  const isPlain = text.length <= MAX_LENGTH && !text.startsWith(OTHER_TYPE) && !text.startsWith(DIGEST);
  return isPlain ? text : `${DIGEST}${createHash('sha256').update(text).digest('hex')}`;
}
