/** A strict RFC 9112 parser, independent of llhttp and its leniencies. */

export interface StrictRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** One character a byte. */
  readonly body: string;
}

export interface StrictResponse {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  /** False if the end has not arrived, or the connection closed before it. */
  readonly isWhole: boolean;
}

/** A parsed message. `fault`: why the next bytes are not a message. */
export interface StrictParse<T> {
  readonly message: T;
  /** Index of its end. */
  readonly end: number;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) (/[\\x21-\\x7e\\x80-\\xff]*|(?<=^OPTIONS )\\*) HTTP/1\\.1$`);
const STATUS_LINE = /^HTTP\/1\.1 ([1-9]\d\d) [\t\x20-\x7e\x80-\xff]*$/;
const FIELD_LINE = new RegExp(
  `^(${TOKEN}):[ \\t]*((?:[\\x21-\\x7e\\x80-\\xff](?:[\\t\\x20-\\x7e\\x80-\\xff]*[\\x21-\\x7e\\x80-\\xff])?)?)[ \\t]*$`,
);

/** Reads the request at `from`; undefined while it is incomplete. @throws an Error that names the syntax error */
export function readRequest(bytes: string, from: number): StrictParse<StrictRequest> | undefined {
  const head = readHead(bytes, from);
  if (head === undefined) return undefined;
  const [, method = '', target = ''] = match(REQUEST_LINE, head.first);
  if (count(head.headers, 'host') !== 1) throw new Error(`${count(head.headers, 'host')} Host headers`);
  const framing = framingOf(head.headers);
  const body = framing === undefined ? { message: '', end: head.end } : readBody(bytes, head.end, framing);
  if (body.end === undefined) return undefined;
  return { message: { method, target, headers: head.headers, body: body.message }, end: body.end };
}

/** Reads all responses to requests with these methods, until the connection closed. @throws like `readRequest` */
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
    // A response beyond the requests may give the reason for closing the connection.
    const method = methods[responses.length] ?? 'GET';
    if (method === 'HEAD' || status === 204 || status === 304) {
      responses.push({ status, headers, body: '', isWhole: true });
      continue;
    }
    const framing = framingOf(headers);
    // Without either header the body ends with the connection, which is not visible here.
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

/** A body as far as received; `end` is absent while it is incomplete. */
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
