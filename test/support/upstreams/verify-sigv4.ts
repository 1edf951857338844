/**
 * Verifies AWS Signature Version 4 by signing the received bytes again, without normalisation that S3 does not do, so that
 * any changed byte is detected. (AWS, "Signature calculations for the Authorization header: transferring payload in a
 * single chunk", and "… in multiple chunks" for the trailer.)
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { RecordedRequest } from './recording-upstream.ts';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export type SignatureCheck =
  /** `body` is the object, without the framing of aws-chunked. */
  | { readonly kind: 'verified'; readonly payload: SignedPayload; readonly body: Buffer }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** How the body is authenticated: by a signed hash, by a trailing checksum, or not at all. */
export type SignedPayload = 'hash' | 'trailer' | 'unsigned';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const TRAILER = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

/** Checks the signature of a received request. */
export function verifySignature(
  request: RecordedRequest,
  { accessKeyId, secretAccessKey }: Credentials,
): SignatureCheck {
  const claim = readAuthorization(request.headers.authorization ?? '');
  const date = single(request, 'x-amz-date');
  const payloadHash = single(request, 'x-amz-content-sha256');
  if (claim === undefined || date === '' || payloadHash === '') return refuse('AccessDenied', 'not signed');
  const [id, day = '', region = '', service = '', terminator] = claim.scope;
  if (id !== accessKeyId) return refuse('InvalidAccessKeyId', `no such key: ${id}`);
  if (service !== 's3' || terminator !== 'aws4_request' || !date.startsWith(day)) {
    return refuse('AuthorizationHeaderMalformed', claim.scope.join('/'));
  }
  if (!claim.signedHeaders.includes('host')) return refuse('AccessDenied', 'host is not signed');
  for (const name of Object.keys(request.headers)) {
    if (name.startsWith('x-amz-') && !claim.signedHeaders.includes(name)) {
      return refuse('AccessDenied', `${name} is not signed`);
    }
  }

  const canonical = canonicalRequest(request, claim.signedHeaders, payloadHash);
  const toSign = [ALGORITHM, date, claim.scope.slice(1).join('/'), sha256(canonical)].join('\n');
  let key: Buffer = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of [day, region, service, 'aws4_request']) key = hmac(key, part);
  if (!equals(hmac(key, toSign), claim.signature)) return refuse('SignatureDoesNotMatch', canonical);
  return verifyPayload(request, payloadHash);
}

interface Claim {
  /** Key id, day, region, service and `aws4_request`. */
  readonly scope: readonly string[];
  readonly signedHeaders: readonly string[];
  readonly signature: Buffer;
}

function readAuthorization(value: string): Claim | undefined {
  const match = /^AWS4-HMAC-SHA256 Credential=([^,\s]+), SignedHeaders=([^,\s]+), Signature=([0-9a-f]{64})$/.exec(
    value,
  );
  if (match === null) return undefined;
  const [, scope = '', signedHeaders = '', signature = ''] = match;
  return { scope: scope.split('/'), signedHeaders: signedHeaders.split(';'), signature: Buffer.from(signature, 'hex') };
}

function canonicalRequest(
  { method, target, rawHeaders }: RecordedRequest,
  signed: readonly string[],
  hash: string,
): string {
  const [path = '', ...rest] = target.split('?');
  const query = rest
    .join('?')
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
    .toSorted();
  const headers = signed.map((name) => `${name}:${valuesOf(rawHeaders, name).join(',')}\n`);
  return [method, path, query.join('&'), headers.join(''), signed.join(';'), hash].join('\n');
}

function verifyPayload(request: RecordedRequest, payloadHash: string): SignatureCheck {
  const { body } = request;
  if (payloadHash === 'UNSIGNED-PAYLOAD') return { kind: 'verified', payload: 'unsigned', body };
  if (payloadHash === TRAILER) return verifyChunked(request);
  if (payloadHash !== sha256(body)) return refuse('XAmzContentSHA256Mismatch', 'the body is another one');
  return { kind: 'verified', payload: 'hash', body };
}

/** Verifies the aws-chunked encoding, whose trailing checksum is in the body, not in an HTTP trailer. */
function verifyChunked(request: RecordedRequest): SignatureCheck {
  const encodings = single(request, 'content-encoding').split(',');
  if (!encodings.includes('aws-chunked')) return refuse('InvalidRequest', 'not aws-chunked');
  const chunked = decodeChunks(request.body);
  if (chunked === undefined) return refuse('IncompleteBody', 'the chunks break off');
  if (String(chunked.body.length) !== single(request, 'x-amz-decoded-content-length')) {
    return refuse('IncompleteBody', `${chunked.body.length} bytes came`);
  }
  const name = single(request, 'x-amz-trailer');
  if (name !== 'x-amz-checksum-crc32') return refuse('InvalidRequest', `an unexpected trailer: ${name}`);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(chunked.body));
  if (chunked.trailer !== `${name}:${checksum.toString('base64')}`) return refuse('BadDigest', chunked.trailer);
  return { kind: 'verified', payload: 'trailer', body: chunked.body };
}

/** @returns undefined if any byte violates the grammar */
function decodeChunks(encoded: Buffer): { readonly body: Buffer; readonly trailer: string } | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = encoded.indexOf('\r\n', at);
    const size = lineEnd === -1 ? '' : encoded.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(size)) return undefined;
    const start = lineEnd + 2;
    const end = start + Number.parseInt(size, 16);
    if (end === start) {
      const tail = encoded.toString('latin1', start);
      return tail.endsWith('\r\n\r\n') ? { body: Buffer.concat(chunks), trailer: tail.trimEnd() } : undefined;
    }
    if (encoded.toString('latin1', end, end + 2) !== '\r\n') return undefined;
    chunks.push(encoded.subarray(start, end));
    at = end + 2;
  }
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push((rawHeaders[i + 1] ?? '').trim().replaceAll(/ +/g, ' '));
  }
  return values;
}

/** Returns the value of a header; empty if there is not exactly one. */
function single({ rawHeaders }: RecordedRequest, name: string): string {
  const values = valuesOf(rawHeaders, name);
  return values.length === 1 ? (values[0] ?? '') : '';
}

function refuse(code: string, message: string): SignatureCheck {
  return { kind: 'refused', code, message };
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function equals(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
