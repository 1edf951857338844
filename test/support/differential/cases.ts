/** Requests and the answers to them, drawn at random: all that is legal on the wire and that a proxy may pass on. */
import { METHODS } from 'node:http';
import fc from 'fast-check';
import type { Field } from '../http-message.ts';

/** A body as it goes over the wire. */
export interface Framed {
  readonly framing: 'none' | 'length' | 'chunked' | 'close';
  readonly body: string;
  /** Lengths of chunks, taken in turn. */
  readonly chunks: readonly number[];
  /** Behind each chunk's size. */
  readonly extension: string;
  readonly trailers: readonly Field[];
}

export interface Case {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  readonly fields: readonly Field[];
  readonly content: Framed;
  readonly answer: Answer;
}

export interface Answer {
  readonly interim: readonly { readonly startLine: string; readonly fields: readonly Field[] }[];
  readonly status: number;
  readonly reason: string;
  readonly fields: readonly Field[];
  readonly content: Framed;
}

/** The same cases for the same seed. */
export function drawCases(count: number, seed: number): Case[] {
  return fc.sample(aCase, { numRuns: count, seed });
}

const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const charOf = (characters: string) => fc.constantFrom(...characters.split(''));
const textOf = (characters: fc.Arbitrary<string>, maxLength: number, minLength = 0) =>
  fc.string({ unit: characters, minLength, maxLength });
const range = (from: number, to: number) => fc.integer({ min: from, max: to }).map((code) => String.fromCharCode(code));

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
const target = fc
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
const visible = range(0x21, 0x7e);
const valueCharacter = fc.oneof(
  { weight: 8, arbitrary: visible },
  { weight: 2, arbitrary: oneOf(' ', '\t', ',', ';', '"', '=') },
  { weight: 1, arbitrary: range(0x80, 0xff) },
);
/** White space around it is no part of it. */
const value = fc
  .oneof(
    { weight: 8, arbitrary: textOf(valueCharacter, 40) },
    { weight: 1, arbitrary: textOf(visible, 900, 500) },
    { weight: 1, arbitrary: fc.constant('') },
  )
  .map((text) => text.replaceAll(/^[\t ]+|[\t ]+$/g, ''));
const field = fc.tuple(anyName, value);
const contentType = oneOf(
  ...['application/json', 'text/plain; charset=UTF-8', 'multipart/form-data; boundary="a b"', 'no type at all', ';;;'],
  ...['', 'a/b/c', 'text/event-stream', 'application/x-www-form-urlencoded', 'text/caf\xe9'],
).map((type): Field => ['Content-Type', type]);
const hopByHop = fc.oneof(
  oneOf<Field[]>([['TE', 'trailers, deflate']], [['Keep-Alive', 'timeout=3']], [['Proxy-Connection', 'close']]),
  oneOf<Field[]>([['Proxy-Authorization', 'Basic eDp5']], [['Proxy-Authenticate', 'Basic']], [['Upgrade', 'h2c']]),
  value.map((secret): Field[] => [
    ['Connection', 'X-Private,  x-other'],
    ['X-PRIVATE', secret],
  ]),
);
const kept = fc.constant<Field[]>([['Connection', 'keep-alive']]);
const fromProxies = fc.array(
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
const fields = (...more: fc.Arbitrary<Field[]>[]) =>
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

// — bodies —

const bytes = (length: number) =>
  fc.integer().map((seed) => {
    let state = seed | 1;
    let text = '';
    for (let i = 0; i < length; i += 1) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
      text += String.fromCharCode((state >>> 16) & 0xff);
    }
    return text;
  });
const body = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 2000 }).chain(bytes) },
  // About the longest that is kept for a retry: replayLimit.
  { weight: 1, arbitrary: oneOf(65_535, 65_536, 65_537, 150_000).chain(bytes) },
);
const framed = (...framings: readonly Framed['framing'][]): fc.Arbitrary<Framed> =>
  fc.record({
    framing: oneOf(...framings),
    body,
    chunks: fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 500, max: 30_000 })), {
      minLength: 1,
      maxLength: 6,
    }),
    extension: oneOf('', '', ';a', ';a=b', ';name="quoted ; string"', ';a;b=c'),
    trailers: fc.oneof(
      fc.constant([]),
      oneOf<Field[]>(
        [['X-Sum', '42']],
        [
          ['X-Sum', '42'],
          ['x-sum', 'caf\xe9'],
          ['X-Empty', ''],
        ],
      ),
    ),
  });
const NO_CONTENT: Framed = { framing: 'none', body: '', chunks: [1], extension: '', trailers: [] };

// — answers —

const interim = fc.array(
  fc.oneof(
    oneOf('HTTP/1.1 100 Continue', 'HTTP/1.1 102 Processing').map((startLine) => ({ startLine, fields: [] })),
    fc.array(field, { maxLength: 3 }).map((more) => ({
      startLine: 'HTTP/1.1 103 Early Hints',
      fields: [['Link', '</a.css>; rel=preload; as=style'], ['link', 'not a link'], ...more] satisfies Field[],
    })),
    value.map((place) => ({
      startLine: 'HTTP/1.1 104 Upload Resumption',
      fields: [['Location', place]] satisfies Field[],
    })),
  ),
  { maxLength: 3 },
);
const status = fc.oneof(
  { weight: 4, arbitrary: oneOf(200, 201, 202, 203, 204, 205, 206, 207, 300, 301, 302, 303, 304, 307, 308) },
  { weight: 2, arbitrary: oneOf(400, 401, 402, 403, 404, 405, 406, 410, 413, 415, 422, 426, 428, 431, 451) },
  { weight: 2, arbitrary: fc.integer({ min: 200, max: 599 }) },
  { weight: 1, arbitrary: fc.integer({ min: 600, max: 999 }) },
);
const reason = fc.oneof(
  oneOf(
    'OK',
    '',
    'Not The Usual Words',
    'Tr\xe8s bien',
    '\xc3\xa9 in UTF-8 \xe2\x82\xac',
    'tab\tand  spaces',
    '!"#$%&',
  ),
  textOf(fc.oneof(visible, range(0x80, 0xff)), 20, 1),
);
const answered = oneOf<Field>(
  ['Set-Cookie', 'a=1; Path=/'],
  ['set-cookie', 'a=1; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT'],
  ['Content-Range', 'bytes 0-9/100'],
  ['Accept-Ranges', 'bytes'],
  ['ETag', 'W/"x"'],
  ['Date', 'Wed, 21 Oct 2026 07:28:00 GMT'],
  ['Server', 'Apache/1.3 (Unix)'],
  ['Strict-Transport-Security', 'max-age=1'],
  ['Age', '12'],
  ['Via', '1.1 varnish, 1.0 other'],
  ['X-Request-Id', 'upstream-7'],
  ['Tidegate-Attempts', '9'],
  ['Retry-After', '2'],
  ['X-RateLimit-Remaining', '0'],
);
const answer = fc
  .record({
    interim: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: interim }),
    status,
    reason,
    fields: fields(fc.array(answered, { minLength: 1, maxLength: 5 }), hopByHop),
    content: framed('length', 'length', 'chunked', 'chunked', 'close'),
  })
  .map((drawn): Answer => drawn);

const aCase: fc.Arbitrary<Case> = fc
  .record({
    method: oneOf(...METHODS.filter((each) => each !== 'CONNECT'), 'GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT'),
    target,
    version: oneOf('1.1', '1.1', '1.1', '1.1', '1.0'),
    fields: fields(fromProxies, hopByHop, kept),
    content: framed('none', 'none', 'length', 'chunked'),
    answer,
  })
  .map(({ content, ...drawn }): Case => {
    // HTTP/1.0 knows no chunks and no SOURCE, and what has no framing no content.
    const version = drawn.version === '1.0' && drawn.method !== 'SOURCE' ? '1.0' : '1.1';
    const framing = version === '1.0' && content.framing === 'chunked' ? 'length' : content.framing;
    const credential = drawn.fields.findIndex(isCredential);
    return {
      ...drawn,
      version,
      // Two of it are refused.
      fields: drawn.fields.filter((each, i) => i === credential || !isCredential(each)),
      content: framing === 'none' ? NO_CONTENT : { ...content, framing },
    };
  });

function isCredential([name]: Field): boolean {
  return name === 'Authorization';
}
