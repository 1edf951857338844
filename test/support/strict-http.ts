/** Messages read to the letter of RFC 9112, by a reader of the tests' own: it forgives nothing that llhttp may forgive. */

export interface StrictRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** A character a byte. */
  readonly body: string;
}

export interface StrictResponse {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  /** False when its end has not come: the connection was closed before, or it is still to come. */
  readonly isWhole: boolean;
}

/** What a stream of bytes was found to be. `fault`: why the next message is none. */
export interface Reading<T> {
  readonly message: T;
  /** Where it ends. */
  readonly end: number;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) (/[\\x21-\\x7e\\x80-\\xff]*|(?<=^OPTIONS )\\*) HTTP/1\\.1$`);
const STATUS_LINE = /^HTTP\/1\.1 ([1-9]\d\d) [\t\x20-\x7e\x80-\xff]*$/;
const FIELD_LINE = new RegExp(
  `^(${TOKEN}):[ \\t]*((?:[\\x21-\\x7e\\x80-\\xff](?:[\\t\\x20-\\x7e\\x80-\\xff]*[\\x21-\\x7e\\x80-\\xff])?)?)[ \\t]*$`,
);

/** The request that begins at `from`; undefined while it is not whole. @throws an Error that says what is wrong with it */
export function readRequest(bytes: string, from: number): Reading<StrictRequest> | undefined {
  const head = readHead(bytes, from);
  if (head === undefined) return undefined;
  const [, method = '', target = ''] = match(REQUEST_LINE, head.first);
  if (count(head.headers, 'host') !== 1) throw new Error(`${count(head.headers, 'host')} Host headers`);
  const framing = framingOf(head.headers);
  const body = framing === undefined ? { message: '', end: head.end } : readBody(bytes, head.end, framing);
  if (body.end === undefined) return undefined;
  return { message: { method, target, headers: head.headers, body: body.message }, end: body.end };
}

/** All that came in answer to requests with these methods, until the connection was closed. @throws as above */
export function readResponses(bytes: string, methods: readonly string[]): StrictResponse[] {
  const responses: StrictResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    const head = readHead(bytes, at);
    if (head === undefined) {
      responses.push({ status: 0, headers: [], body: bytes.slice(at), isWhole: false });
      return responses;
    }
    const status = Number(match(STATUS_LINE, head.first)[1]);
    const { headers } = head;
    at = head.end;
    if (status < 200) continue;
    // Beyond what was asked for, an answer may still say why the connection is closed.
    const method = methods[responses.length] ?? 'GET';
    if (method === 'HEAD' || status === 204 || status === 304) {
      responses.push({ status, headers, body: '', isWhole: true });
      continue;
    }
    const framing = framingOf(headers);
    // Without either the connection says where it ends: of that nothing is seen here.
    const body = framing === undefined ? cut(bytes.slice(at)) : readBody(bytes, at, framing);
    responses.push({ status, headers, body: body.message, isWhole: body.end !== undefined });
    at = body.end ?? bytes.length;
  }
  return responses;
}

function readHead(bytes: string, from: number): { first: string; headers: string[]; end: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n', from);
  if (end < 0) return undefined;
  const [first = '', ...fields] = bytes.slice(from, end).split('\r\n');
  const headers = fields.flatMap((field) => match(FIELD_LINE, field).slice(1));
  return { first, headers, end: end + 4 };
}

type Framing = number | 'chunked';

function framingOf(headers: readonly string[]): Framing | undefined {
  const lengths = values(headers, 'content-length');
  const codings = values(headers, 'transfer-encoding');
  if (lengths.length + codings.length > 1) throw new Error(`framed more than once: ${[...lengths, ...codings].join()}`);
  if (codings.length === 1) {
    if (codings[0]?.toLowerCase() !== 'chunked') throw new Error(`Transfer-Encoding: ${codings[0]}`);
    return 'chunked';
  }
  if (lengths[0] === undefined) return undefined;
  if (!/^(?:0|[1-9]\d{0,15})$/.test(lengths[0])) throw new Error(`Content-Length: ${lengths[0]}`);
  return Number(lengths[0]);
}

/** A body as far as it has come; without an `end` while that has not. */
interface Body {
  readonly message: string;
  readonly end: number | undefined;
}

const cut = (message: string): Body => ({ message, end: undefined });

function readBody(bytes: string, from: number, framing: Framing): Body {
  if (framing !== 'chunked') {
    const end = from + framing;
    return bytes.length < end ? cut(bytes.slice(from)) : { message: bytes.slice(from, end), end };
  }
  let message = '';
  let at = from;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return cut(message);
    const [, digits = ''] = match(/^([\dA-Fa-f]{1,8})$/, bytes.slice(at, line));
    const size = Number.parseInt(digits, 16);
    if (size === 0) return { message, end: endOfTrailers(bytes, line + 2) };
    at = line + 2 + size + 2;
    if (bytes.length < at) return cut(message + bytes.slice(line + 2, line + 2 + size));
    if (bytes.slice(at - 2, at) !== '\r\n') throw new Error('a chunk that is longer than it says');
    message += bytes.slice(line + 2, at - 2);
  }
}

function endOfTrailers(bytes: string, from: number): number | undefined {
  for (let at = from; ; ) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return undefined;
    if (end === at) return end + 2;
    match(FIELD_LINE, bytes.slice(at, end));
    at = end + 2;
  }
}

function match(pattern: RegExp, line: string): RegExpExecArray {
  const found = pattern.exec(line);
  if (found === null) throw new Error(`not well-formed: ${JSON.stringify(line.slice(0, 200))}`);
  return found;
}

function values(headers: readonly string[], name: string): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name);
}

function count(headers: readonly string[], name: string): number {
  return values(headers, name).length;
}
