import type { Client } from 'undici';
import { internalOf } from './undici-internals.ts';

/**
 * Patches the response parser of undici 8.13.1 (client-h1.js) on each new connection. There is no public hook.
 *
 * - An unexpected interim `100 Continue` destroys the connection as a 'bad response'
 *   (https://github.com/nodejs/undici/issues/197), although a client must be able to parse one (RFC 9110 §15.2). It is skipped
 *   here, as undici itself skips 102 and 103.
 * - A reason phrase is decoded as UTF-8, which loses other bytes, and the first part of one that arrives in two packets is lost.
 *   (https://github.com/nodejs/undici/pull/4768 fixed the same for headers.)
 * - White space after a Content-Length is taken for digits (client-h1.js:553), so that a complete response seems truncated.
 *   (llhttp itself refuses a tab there.)
 * - llhttp accepts HTTP/0.9 and HTTP/2.0 in a status line. Such a response is malformed.
 * - No handler gets the version of a response: `onVersion` gets it before the head is complete.
 *
 * If the parser is not found, another release of undici has changed its internals: responses are then not patched.
 */
export function patchParsers(client: Client, onVersion: (version: ResponseVersion) => void): void {
  client.on('connect', () => {
    const parser = internalOf(internalOf(client, 'socket'), 'parser');
    if (isParser(parser)) patchParser(parser, onVersion);
  });
}

/** HTTP version of an upstream's response. */
export type ResponseVersion = '1.0' | '1.1' | '2.0';

interface UndiciParser {
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

/** Return values for llhttp: no body follows this head; this is not a valid head. */
const SKIP_BODY = 1;
const PARSER_ERROR = -1;

function patchParser(parser: UndiciParser, onVersion: (version: ResponseVersion) => void): void {
  const complete = parser.onHeadersComplete.bind(parser);
  parser.onHeadersComplete = (statusCode, upgrade, shouldKeepAlive) => {
    if (parser.llhttp.llhttp_get_http_major(parser.ptr) !== 1) return PARSER_ERROR;
    onVersion(parser.llhttp.llhttp_get_http_minor(parser.ptr) === 0 ? '1.0' : '1.1');
    patchContentLength(parser);
    if (statusCode !== 100) return complete(statusCode, upgrade, shouldKeepAlive);
    parser.statusCode = statusCode; // undici resets it, and the headers, at the end of the message
    return SKIP_BODY;
  };
  parser.onStatus = (bytes) => {
    parser.statusText += bytes.toString('latin1');
    return 0;
  };
}

function patchContentLength(parser: UndiciParser): void {
  const { headers } = parser;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.length !== 14 || headers[i]?.toString('latin1').toLowerCase() !== 'content-length') continue;
    const length = headers[i + 1]?.toString('latin1') ?? '';
    if (length.endsWith(' ')) parser.contentLength = Number(length);
  }
}

function isParser(value: unknown): value is UndiciParser {
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
