/** Draws random requests and responses: everything legal on the wire that a proxy forwards. */
import { METHODS } from 'node:http';
import fc from 'fast-check';
import type { Field } from '../clients/http-message.ts';
import {
  field,
  fields,
  fromProxies,
  hopByHop,
  kept,
  oneOf,
  range,
  target,
  textOf,
  value,
  visible,
} from './draw-fields.ts';

/** A body as sent on the wire. */
export interface FramedContent {
  readonly framing: 'none' | 'length' | 'chunked' | 'close';
  readonly body: string;
  /** Chunk lengths, used in turn. */
  readonly chunks: readonly number[];
  /** The extension after each chunk size. */
  readonly extension: string;
  readonly trailers: readonly Field[];
}

export interface MessageCase {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  readonly fields: readonly Field[];
  readonly content: FramedContent;
  readonly answer: CaseAnswer;
}

export interface CaseAnswer {
  readonly interim: readonly { readonly startLine: string; readonly fields: readonly Field[] }[];
  readonly status: number;
  readonly reason: string;
  readonly fields: readonly Field[];
  readonly content: FramedContent;
}

/** Draws cases, reproducibly for the same seed. */
export function drawCases(count: number, seed: number): MessageCase[] {
  return fc.sample(aCase, { numRuns: count, seed });
}

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
  // Around the default replay buffer size.
  { weight: 1, arbitrary: oneOf(65_535, 65_536, 65_537, 150_000).chain(bytes) },
);
const framed = (...framings: readonly FramedContent['framing'][]): fc.Arbitrary<FramedContent> =>
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
const NO_CONTENT: FramedContent = { framing: 'none', body: '', chunks: [1], extension: '', trailers: [] };

// — responses —

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
  .map((drawn): CaseAnswer => drawn);

const aCase: fc.Arbitrary<MessageCase> = fc
  .record({
    method: oneOf(...METHODS.filter((each) => each !== 'CONNECT'), 'GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT'),
    target,
    version: oneOf('1.1', '1.1', '1.1', '1.1', '1.0'),
    fields: fields(fromProxies, hopByHop, kept),
    content: framed('none', 'none', 'length', 'chunked'),
    answer,
  })
  .map(({ content, ...drawn }): MessageCase => {
    // HTTP/1.0 has neither chunked encoding nor SOURCE, and a message without framing has no body.
    const version = drawn.version === '1.0' && drawn.method !== 'SOURCE' ? '1.0' : '1.1';
    const framing = version === '1.0' && content.framing === 'chunked' ? 'length' : content.framing;
    const credential = drawn.fields.findIndex(isCredential);
    return {
      ...drawn,
      version,
      // The proxy rejects a duplicate of this field.
      fields: drawn.fields.filter((each, i) => i === credential || !isCredential(each)),
      content: framing === 'none' ? NO_CONTENT : { ...content, framing },
    };
  });

function isCredential([name]: Field): boolean {
  return name === 'Authorization';
}
