/** White space around the value of a header is spaces and tabs (RFC 9110 §5.6.3); every other byte is part of the value. */
import { expect, test } from 'vitest';
import { negotiateFormat } from '../../../src/admin/negotiate-format.ts';
import { readHints } from '../../../src/core/hints/read-hints.ts';
import { addCorsHeaders } from '../../../src/http/headers/cors-headers.ts';
import { isEventStream } from '../../../src/http/headers/forward-headers.ts';
import { isJsonType } from '../../../src/http/headers/media-type.ts';
import { outcomeMarks } from '../../../src/http/headers/raw-headers.ts';
import { keyFromHeaders } from '../../../src/http/idempotency/idempotency-key.ts';

const CORS = {
  ...{ origins: new Set(['https://a']), methods: undefined, headers: undefined, exposed: 'X', credentials: false },
  ...{ wildcards: [], maxAge: 1 },
};
function keyOf(value: string): string | undefined {
  const idempotency = { header: { name: 'Idempotency-Key', lower: 'idempotency-key' }, generates: false };
  const request = { verb: 'POST', rawHeaders: ['Idempotency-Key', value] };
  return keyFromHeaders(request, { target: { idempotency } })?.value;
}

test.each<[string, (padding: string) => unknown, unknown, unknown]>([
  ['an idempotency key', (padding) => keyOf(`${padding}k${padding}`), 'k', '\xA0k\xA0'],
  ['an idempotency key without other bytes', (padding) => keyOf(padding), undefined, '\xA0'],
  ['Retry-After', (padding) => readHints(429, ['Retry-After', `5s${padding}`], 0).retryAfterMs, 5000, undefined],
  [
    'Stripe-Should-Retry',
    (padding) => readHints(429, ['Stripe-Should-Retry', `true${padding}`], 0).retryAdvice,
    'retry',
    undefined,
  ],
  [
    'the mark of a stored response',
    (padding) => outcomeMarks(['Replayed', `true${padding}`], 'replayed').isReplayed,
    true,
    false,
  ],
  [
    'Tidegate-Outcome',
    (padding) => outcomeMarks(['Tidegate-Outcome', `unknown${padding}`], undefined).isUnknown,
    true,
    false,
  ],
  ['the type of a JSON body', (padding) => isJsonType(`application/json${padding}`), true, false],
  [
    'the type of an event stream',
    (padding) => isEventStream(['Content-Type', `text/event-stream${padding};x`]),
    true,
    false,
  ],
  ['Vary', (padding) => addCorsHeaders(['Vary', `Accept,${padding}Origin`], CORS, undefined).length, 2, 4],
  ['Accept', (padding) => negotiateFormat(`application/openmetrics-text${padding};q=1`), 'openmetrics', 'prometheus'],
])('%s loses spaces and tabs, and keeps a byte that Unicode calls a space', (_, read, trimmed, kept) => {
  expect([read(' '), read('\t'), read('\xA0')]).toEqual([trimmed, trimmed, kept]);
});
