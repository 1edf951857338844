import { createHash } from 'node:crypto';
import type { MessageField } from '../../core/delivery/delivery-policy.ts';
import { readJsonScalar } from '../../core/http-semantics/json-field.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/** A longer value is replaced by its digest: senders choose these values, and each is stored and listed as it is. */
const MAX_LENGTH = 256;

/** Reads a header or a field of a JSON body; undefined if the request has none, or an empty one. */
export function readField(
  field: MessageField | undefined,
  { headers }: Pick<HttpServerRequest, 'headers'>,
  body: Buffer,
): string | undefined {
  if (field === undefined) return undefined;
  const value = field.kind === 'json' ? readJsonScalar(body, field.path) : headers[field.name];
  // Other numbers are not exact: two ids could be equal.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  if (value === undefined || value === '') return undefined;
  const text = String(value);
  return text.length <= MAX_LENGTH ? text : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
