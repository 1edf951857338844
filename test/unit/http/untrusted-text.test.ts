/** Clients and upstreams decide the length and content of a header, so no reader may take quadratic time. */
import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { negotiateFormat } from '../../../src/admin/negotiate-format.ts';
import { readHints, readImpliedWait } from '../../../src/core/hints/read-hints.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { readJsonField } from '../../../src/core/http-semantics/json-field.ts';
import { appendToListField, parseListField } from '../../../src/core/http-semantics/list-field.ts';
import { segmentsOf } from '../../../src/core/http-semantics/path-pattern.ts';
import { type CorsPolicy, addCorsHeaders } from '../../../src/http/headers/cors-headers.ts';
import { parseExpect } from '../../../src/http/headers/expect-header.ts';
import {
  forwardRequestHeaders,
  forwardResponseHeaders,
  isEventStream,
  isLoop,
  type RequestForwarding,
  type ResponseForwarding,
} from '../../../src/http/headers/forward-headers.ts';
import { isJsonType, isPlainJsonType } from '../../../src/http/headers/media-type.ts';
import { parsePreferWait } from '../../../src/http/headers/prefer-header.ts';
import { keyAccountOf } from '../../../src/http/idempotency/key-account.ts';
import { networkOf } from '../../../src/http/request/client-identity.ts';
import { compileGlob } from '../../../src/http/request/glob.ts';
import { mergeSlashes } from '../../../src/http/request/match-path.ts';
import { isHost, isSameAuthority } from '../../../src/http/request/request-target.ts';
import { normalizeHost } from '../../../src/http/request/router.ts';
import { toHttp2Fields } from '../../../src/http/server/http2-fields.ts';
import { readErrorCodes } from '../../../src/http/upstream/error-codes.ts';
import { isFarFromQuadratic, longText } from '../../support/linear-time.ts';

const VIA = '1.1 tidegate-a';
const FORWARDED_REQUEST: RequestForwarding = {
  ...{ via: VIA, requestId: 'r', peer: '127.0.0.1', peerIsTrusted: true, forwarded: true, host: 'h' },
  proto: 'http',
  ...{ clientHost: undefined, http2: true, maxForwards: undefined },
};
const FORWARDED_RESPONSE: ResponseForwarding = {
  ...{ via: VIA, requestId: 'r', xRequestId: 'x', attempts: 1, unknown: false, close: false },
};
const CORS: CorsPolicy = {
  ...{ origins: new Set(['https://a']), methods: undefined, headers: undefined, exposed: 'X', credentials: false },
  wildcards: [['https://', '.a']],
  maxAge: 1,
};
const HINT_FIELDS = [
  ...['Retry-After', 'retry-after-ms', 'grpc-retry-pushback-ms', 'Stripe-Should-Retry', 'Stripe-Rate-Limited-Reason'],
  ...['RateLimit', 'RateLimit-Policy', 'RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'Date', 'Age'],
  'X-Shopify-Shop-Api-Call-Limit',
];
const account = (headers: IncomingHttpHeaders): string =>
  keyAccountOf([{ kind: 'jwt', header: 'authorization', claims: ['sub'] }], { headers, rawHeaders: [] });

const READERS: readonly (readonly [string, (text: string) => unknown])[] = [
  ['the elements of a list', parseListField],
  ['a list that continues', (text) => appendToListField('a', text)],
  ...['Connection', 'Via', 'TE', 'X-Forwarded-For', 'Forwarded', 'X-Other'].map(
    (name) =>
      [`${name} of a request`, (text: string) => forwardRequestHeaders([name, text], FORWARDED_REQUEST)] as const,
  ),
  ...['Connection', 'Via', 'X-Other'].map(
    (name) =>
      [`${name} of a response`, (text: string) => forwardResponseHeaders([name, text], FORWARDED_RESPONSE)] as const,
  ),
  ...HINT_FIELDS.map((name) => [`${name}, as a hint`, (text: string) => readHints(429, [name, text], 0)] as const),
  ['an implied wait', (text) => readImpliedWait(['RateLimit', text, 'X-RateLimit-Reset', text], NO_HINTS, 0, false)],
  ['a header over HTTP/2', (text) => toHttp2Fields(['a', text])],
  ['Vary', (text) => addCorsHeaders(['Vary', text], CORS, text)],
  ['Expect', parseExpect],
  ['Prefer', parsePreferWait],
  ['Accept', negotiateFormat],
  ['Via of a loop', (text) => isLoop(`${text} tidegate-a`, VIA)],
  ['Content-Type', (text) => [isEventStream(['Content-Type', text]), isJsonType(text), isPlainJsonType(text)]],
  ['Authorization', (text) => account({ authorization: text })],
  ['Host', (text) => [isHost(text), normalizeHost(text), isSameAuthority(text, 'h', 'https')]],
  ['an address', networkOf],
  ['a path', (text) => [segmentsOf(text), mergeSlashes(text)]],
  ['a pattern', compileGlob('*a*b*c')],
  ['a key in a body', (text) => readJsonField(Buffer.from(text), ['a', 'b'])],
  ['error codes in a body', (text) => readErrorCodes(Buffer.from(text), text, [['*', 'code']])],
];

const PUMPS = [
  ...[' ', '\t', ',', ';', ':', '.', '/', '%', '"', '\\', '=', '-', '+', '0', 'a', '[', '{', '\xa0'],
  ...[' ,', ', ', 'a,', 'a ', 'a;', ';a', 'a=', '"a"', '"a",', '\\"', '1,', '0.', '%2', '%25', '/.', '"a":', '{"a":'],
  ...['a;r=0,', '"a";q=1,', 'ab'],
];

test.each(READERS)('%s takes linear time to read, whatever its content', (_, read) => {
  const slow = PUMPS.filter(
    (pump) =>
      !['', 'a', 'a, b', '"', '{"a":"'].every((prefix) =>
        ['', 'b', ' b,'].every((suffix) => isFarFromQuadratic(() => void read(longText(prefix, pump, suffix)))),
      ),
  );
  expect(slow).toEqual([]);
});

describe('as many headers as fit', () => {
  const repeated = Array.from({ length: 16 * 1024 }, (_, i) => (i % 2 === 0 ? 'set-cookie' : 'a'));
  const distinct = Array.from({ length: 16 * 1024 }, (_, i) => (i % 2 === 0 ? `x-${i}` : 'a'));

  test.each([
    ['sent to a client over HTTP/2', toHttp2Fields],
    ['sent to a client', (flat: string[]) => forwardResponseHeaders(flat, FORWARDED_RESPONSE)],
    ['sent to an upstream', (flat: string[]) => forwardRequestHeaders(flat, FORWARDED_REQUEST)],
    ['sent to a page', (flat: string[]) => addCorsHeaders(flat, CORS, 'https://a')],
    ['read for hints', (flat: string[]) => readHints(429, flat, 0)],
  ])('take linear time when they are %s', (_, send: (flat: string[]) => unknown) => {
    expect(isFarFromQuadratic(() => void send(repeated))).toBe(true);
    expect(isFarFromQuadratic(() => void send(distinct))).toBe(true);
  });
});
