import type { Client } from 'undici';
import { partOf } from './undici-internals.ts';

/**
 * What undici 8.13.1's parser (client-h1.js) makes of an answer, set right on each new connection. There is no public hook.
 *
 * - An interim `100 Continue` that nobody asked for destroys the connection as a 'bad response'
 *   (https://github.com/nodejs/undici/issues/197), though a client must be able to read one (RFC 9110 §15.2). It is
 *   skipped here, as undici itself skips 102 and 103.
 * - A reason phrase is decoded as UTF-8, which loses the bytes of any other, and the first part of one that comes in two
 *   packets is forgotten. (https://github.com/nodejs/undici/pull/4768 made the same right for headers.)
 * - White space behind a Content-Length is taken for digits of it (client-h1.js:553): a whole answer would be told as cut.
 *   (llhttp itself refuses a tab there.)
 * - llhttp takes HTTP/0.9 and HTTP/2.0 for versions of what it reads. An answer of theirs is malformed.
 * - The version of an answer goes to no handler: `onVersion` gets it, before the head is complete.
 *
 * Where the parser is not found, another release of undici has changed its inside: answers then pass as it lets them.
 */
export function mendParsers(client: Client, onVersion: (version: AnswerVersion) => void): void {
  client.on('connect', () => {
    const parser = partOf(partOf(client, 'socket'), 'parser');
    if (isParser(parser)) mend(parser, onVersion);
  });
}

/** Of the message that an upstream has answered with. */
export type AnswerVersion = '1.0' | '1.1' | '2.0';

interface Parser {
  readonly llhttp: {
    llhttp_get_http_major(parser: unknown): number;
    llhttp_get_http_minor(parser: unknown): number;
  };
  readonly ptr: unknown;
  /** Names and values in turn. */
  readonly headers: readonly Buffer[];
  contentLength: number;
  statusCode: number;
  statusText: string;
  onStatus(bytes: Buffer): number;
  onHeadersComplete(statusCode: number, upgrade: boolean, shouldKeepAlive: boolean): number;
}

/** To llhttp: no body follows this head; this is no head. */
const SKIP_BODY = 1;
const REFUSE = -1;

function mend(parser: Parser, onVersion: (version: AnswerVersion) => void): void {
  const complete = parser.onHeadersComplete.bind(parser);
  parser.onHeadersComplete = (statusCode, upgrade, shouldKeepAlive) => {
    if (parser.llhttp.llhttp_get_http_major(parser.ptr) !== 1) return REFUSE;
    onVersion(parser.llhttp.llhttp_get_http_minor(parser.ptr) === 0 ? '1.0' : '1.1');
    mendLength(parser);
    if (statusCode !== 100) return complete(statusCode, upgrade, shouldKeepAlive);
    parser.statusCode = statusCode; // the end of the message forgets it, and its headers
    return SKIP_BODY;
  };
  parser.onStatus = (bytes) => {
    parser.statusText += bytes.toString('latin1');
    return 0;
  };
}

function mendLength(parser: Parser): void {
  const { headers } = parser;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.length !== 14 || headers[i]?.toString('latin1').toLowerCase() !== 'content-length') continue;
    const length = headers[i + 1]?.toString('latin1') ?? '';
    if (length.endsWith(' ')) parser.contentLength = Number(length);
  }
}

function isParser(value: unknown): value is Parser {
  if (typeof value !== 'object' || value === null) return false;
  return (
    'statusCode' in value &&
    'statusText' in value &&
    'onStatus' in value &&
    typeof value.onStatus === 'function' &&
    'onHeadersComplete' in value &&
    typeof value.onHeadersComplete === 'function' &&
    'contentLength' in value &&
    'headers' in value &&
    Array.isArray(value.headers) &&
    'ptr' in value &&
    'llhttp' in value &&
    typeof value.llhttp === 'object' &&
    value.llhttp !== null &&
    'llhttp_get_http_major' in value.llhttp &&
    'llhttp_get_http_minor' in value.llhttp
  );
}
