/** Arbitraries for request targets and header fields that are legal on the wire. */
import fc from 'fast-check';
import type { Field } from '../clients/http-message.ts';

export const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const charOf = (characters: string) => fc.constantFrom(...characters.split(''));
export const textOf = (characters: fc.Arbitrary<string>, maxLength: number, minLength = 0) =>
  fc.string({ unit: characters, minLength, maxLength });
export const range = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((code) => String.fromCharCode(code));

// — targets —

const escaped = oneOf('%2F', '%2f', '%20', '%25', '%3F', '%3f', '%23', '%7E', '%7e', '%E2%82%AC', '%e2%82%ac');
const plain = charOf('abcXYZ019-_~');
const segment = fc
  .tuple(textOf(fc.oneof(plain, escaped, charOf('!$&\'()*+,;=:@|^`{}[]"<>')), 8), oneOf('', 'a.b', 'v1.', '...'))
  .map((parts) => parts.join('a'));
const query = textOf(
  fc.oneof(
    plain,
    escaped,
    oneOf('%00', '?', '??', '/', '//', '+', ';', '&', '&&', '=', '==', '../', '\\', '[]', '{}', '|'),
  ),
  12,
);
export const target = fc
  .tuple(fc.array(segment, { maxLength: 4 }), oneOf('/', '/', '//'), oneOf('', '', '/', '//'), fc.option(query))
  .map(([segments, slash, end, search]) => {
    const path = `/${segments.join(slash)}${segments.length === 0 ? '' : end}`;
    return search === null ? path : `${path}?${search}`;
  });

// — headers —

const tokenCharacter = charOf("abcdefgXYZ0123-_!#$%&'*+.^`|~");
const anyName = fc.oneof(
  textOf(tokenCharacter, 12, 1).map((rest) => `X-${rest}`),
  oneOf('X-A', 'x-a', 'X-a', 'Accept', 'aCCept', 'Cookie', 'Authorization', 'Cache-Control', 'If-None-Match', 'Origin'),
  oneOf('Accept-Encoding', 'Content-Encoding', 'Date', 'From', 'Referer', 'User-Agent', 'DNT', 'Idempotency-Key'),
  oneOf('__proto__', 'constructor', 'toString', 'X-Forwarded-Port', 'HTTP2-Settings', 'Content-MD5', 'Digest', 'Range'),
);
export const visible = range(0x21, 0x7e);
const valueCharacter = fc.oneof(
  { weight: 8, arbitrary: visible },
  { weight: 2, arbitrary: oneOf(' ', '\t', ',', ';', '"', '=') },
  { weight: 1, arbitrary: range(0x80, 0xff) },
);
/** A field value, without surrounding white space. */
export const value = fc
  .oneof(
    { weight: 8, arbitrary: textOf(valueCharacter, 40) },
    { weight: 1, arbitrary: textOf(visible, 900, 500) },
    { weight: 1, arbitrary: fc.constant('') },
  )
  .map((text) => text.replaceAll(/^[\t ]+|[\t ]+$/g, ''));
export const field = fc.tuple(anyName, value);
const contentType = oneOf(
  ...['application/json', 'text/plain; charset=UTF-8', 'multipart/form-data; boundary="a b"', 'no type at all', ';;;'],
  ...['', 'a/b/c', 'text/event-stream', 'application/x-www-form-urlencoded', 'text/caf\xe9'],
).map((type): Field => ['Content-Type', type]);
export const hopByHop = fc.oneof(
  oneOf<Field[]>([['TE', 'trailers, deflate']], [['Keep-Alive', 'timeout=3']], [['Proxy-Connection', 'close']]),
  oneOf<Field[]>([['Proxy-Authorization', 'Basic eDp5']], [['Proxy-Authenticate', 'Basic']], [['Upgrade', 'h2c']]),
  value.map((secret): Field[] => [
    ['Connection', 'X-Private,  x-other'],
    ['X-PRIVATE', secret],
  ]),
);
export const kept = fc.constant<Field[]>([['Connection', 'keep-alive']]);
export const fromProxies = fc.array(
  oneOf<Field>(
    ['X-Forwarded-For', '203.0.113.7'],
    ['x-forwarded-proto', 'https'],
    ['X-Forwarded-Host', 'shop.example'],
    ['Forwarded', 'for=203.0.113.7'],
    ['Via', '1.0 fred'],
    ['X-Request-Id', 'abc'],
    ['X-Envoy-Attempt-Count', '1'],
    ['Tidegate-Attempts', '7'],
  ),
  { minLength: 1, maxLength: 3 },
);
export const fields = (...more: fc.Arbitrary<Field[]>[]) =>
  fc
    .tuple(
      fc.array(field, { maxLength: 8 }),
      fc.option(contentType, { nil: undefined }),
      ...more.map((each) => fc.option(each, { nil: [], freq: 3 })),
    )
    .chain(([plainFields, type, ...rest]) =>
      fc.shuffledSubarray([...plainFields, ...(type === undefined ? [] : [type]), ...rest.flat()], {
        minLength: plainFields.length + (type === undefined ? 0 : 1) + rest.flat().length,
      }),
    );
