/** Parses HTTP/1 messages without changing a byte: strings are latin1, one character a byte. */

/** Name and value, without the white space around the value (RFC 9112 §5.1). */
export type Field = readonly [name: string, value: string];

export interface HttpMessage {
  readonly startLine: string;
  readonly fields: readonly Field[];
  /** How the body is delimited; `none`: the head excludes a body. */
  readonly framing: 'none' | 'length' | 'chunked' | 'close';
  /** The decoded body. */
  readonly body: string;
  readonly trailers: readonly Field[];
}

export interface HttpResponse {
  /** 1xx responses, in order. */
  readonly interim: readonly HttpMessage[];
  readonly final: HttpMessage;
}

/** A message and the index of its end; undefined while it is incomplete. Throws an Error for invalid HTTP/1. */
type Read<T> = { readonly message: T; readonly end: number } | undefined;

export function readRequest(text: string, from: number): Read<HttpMessage> {
  const head = readHead(text, from);
  if (head === undefined) return undefined;
  if (!/^\S+ \S+ HTTP\/1\.[01]$/.test(head.startLine)) throw new Error(`no request line: ${head.startLine}`);
  return readBody(text, head, false, false);
}

/** @param ended true if the server has closed the connection, which may end a body */
export function readResponse(text: string, from: number, method: string, ended: boolean): Read<HttpResponse> {
  const interim: HttpMessage[] = [];
  for (let at = from; ; ) {
    const head = readHead(text, at);
    if (head === undefined) return undefined;
    const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(head.startLine)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) throw new Error(`no status line: ${head.startLine}`);
    if (status >= 200) {
      const isBare = method === 'HEAD' || status === 204 || status === 304;
      const read = isBare ? bare(head) : readBody(text, head, true, ended);
      return read === undefined ? undefined : { message: { interim, final: read.message }, end: read.end };
    }
    interim.push(bare(head).message);
    at = head.end;
  }
}

/** All values of a field, by its name in lower case. */
export function valuesOf(fields: readonly Field[], name: string): string[] {
  return fields.flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : []));
}

interface Head {
  readonly startLine: string;
  readonly fields: readonly Field[];
  readonly end: number;
}

function readHead(text: string, from: number): Head | undefined {
  const end = text.indexOf('\r\n\r\n', from);
  if (end < 0) return undefined;
  const [startLine = '', ...lines] = text.slice(from, end).split('\r\n');
  return { startLine, fields: lines.map(readField), end: end + 4 };
}

function readField(line: string): Field {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([^\0\r\n]*?)[\t ]*$/.exec(line);
  if (match === null) throw new Error(`no header field: ${JSON.stringify(line)}`);
  return [match[1] ?? '', match[2] ?? ''];
}

function bare({ startLine, fields, end }: Head): { readonly message: HttpMessage; readonly end: number } {
  return { message: { startLine, fields, framing: 'none', body: '', trailers: [] }, end };
}

function readBody(text: string, head: Head, untilClose: boolean, ended: boolean): Read<HttpMessage> {
  const { startLine, fields, end } = head;
  const codings = valuesOf(fields, 'transfer-encoding');
  const lengths = valuesOf(fields, 'content-length');
  if (codings.length + lengths.length > 1) throw new Error(`framed twice: ${[...codings, ...lengths].join(', ')}`);
  if (codings[0]?.toLowerCase() === 'chunked') return readChunks(text, head);
  if (codings.length > 0) throw new Error(`an unknown transfer coding: ${codings[0]}`);
  if (lengths[0] !== undefined) {
    if (!/^\d+$/.test(lengths[0])) throw new Error(`no length: ${lengths[0]}`);
    const stop = end + Number(lengths[0]);
    if (text.length < stop) return undefined;
    return { message: { startLine, fields, framing: 'length', body: text.slice(end, stop), trailers: [] }, end: stop };
  }
  if (!untilClose) return bare(head);
  if (!ended) return undefined;
  return { message: { startLine, fields, framing: 'close', body: text.slice(end), trailers: [] }, end: text.length };
}

function readChunks(text: string, { startLine, fields, end }: Head): Read<HttpMessage> {
  let body = '';
  for (let at = end; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = /^([0-9a-f]+)[\t ]*(?:;.*)?$/i.exec(text.slice(at, lineEnd))?.[1];
    if (size === undefined) throw new Error(`no chunk size: ${JSON.stringify(text.slice(at, lineEnd))}`);
    const data = lineEnd + 2;
    const length = Number.parseInt(size, 16);
    if (length === 0) {
      const empty = text.startsWith('\r\n', data);
      const stop = empty ? lineEnd : text.indexOf('\r\n\r\n', data);
      if (stop < 0) return undefined;
      const trailers = empty ? [] : text.slice(data, stop).split('\r\n').map(readField);
      return { message: { startLine, fields, framing: 'chunked', body, trailers }, end: stop + 4 };
    }
    if (text.length < data + length + 2) return undefined;
    if (!text.startsWith('\r\n', data + length)) throw new Error('a chunk without an end');
    body += text.slice(data, data + length);
    at = data + length + 2;
  }
}
