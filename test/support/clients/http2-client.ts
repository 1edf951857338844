/** An HTTP/2 client, and one that writes raw frames. */
import { once } from 'node:events';
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import { connect as connectHttp2 } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import { MAX_SESSION_MEMORY } from '../../../src/http/undici/http2-session-memory.ts';
import { atEnd } from '../at-end.ts';

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly json: () => Record<string, unknown>;
}

/** Opens a session. It is destroyed when the test ends. */
export async function openHttp2(url: string, ca: string): Promise<ClientHttp2Session> {
  const session = connectHttp2(url, { ca, maxSessionMemory: MAX_SESSION_MEMORY });
  atEnd(() => session.destroy());
  session.on('error', () => undefined);
  await once(session, 'connect');
  return session;
}

/** Resolves to the complete response; rejects if its stream is reset before. */
export function sendHttp2(
  session: ClientHttp2Session,
  path: string,
  headers: OutgoingHttpHeaders = {},
  body?: string | Buffer,
): Promise<Http2Answer> {
  const stream = session.request({ ':path': path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return readHttp2Answer(stream);
}

export function readHttp2Answer(stream: ClientHttp2Stream): Promise<Http2Answer> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders | undefined;
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('trailers', (received: IncomingHttpHeaders) => {
      trailers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      if (headers === undefined) return reject(new Error(`closed with ${stream.rstCode} before its head`));
      const body = Buffer.concat(chunks);
      const json = (): Record<string, unknown> => JSON.parse(body.toString()) as Record<string, unknown>;
      resolve({ status: Number(headers[':status']), headers, trailers, body, json });
    });
  });
}

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goAway: 7, windowUpdate: 8 } as const;
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const;

/** RFC 9113 §4.1. */
export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function encodeUint32s(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (const [i, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * i);
  return bytes;
}

/** `:status: 200`, of the static table (RFC 7541 appendix A). */
export const OK = Buffer.from([0x88]);

/** Encodes a head as literals without indexing (RFC 7541 §6.2.2). Names and values are shorter than 127 bytes. */
export function literals(headers: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]),
  );
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Calls `onFrame` for each frame received after the preface, if any. */
export function readFrames(socket: TLSSocket, prefaceLength: number, onFrame: (read: Frame) => void): void {
  let bytes = Buffer.alloc(0);
  let skip = prefaceLength;
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length < skip) return;
    bytes = bytes.subarray(skip);
    skip = 0;
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const length = bytes.readUIntBE(0, 3);
      onFrame({
        type: bytes[3] ?? 0,
        flags: bytes[4] ?? 0,
        stream: bytes.readUInt32BE(5),
        payload: Buffer.from(bytes.subarray(9, 9 + length)),
      });
      bytes = bytes.subarray(9 + length);
    }
  });
}

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** Opens a connection and sends the preface. It is destroyed when the test ends. */
export async function openFrames(url: string, ca: string): Promise<{ socket: TLSSocket; frames: readonly Frame[] }> {
  const { hostname, port } = new URL(url);
  const socket = connectTls({ host: hostname, port: Number(port), ca, ALPNProtocols: ['h2'] });
  atEnd(() => {
    socket.destroy();
  });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  const frames: Frame[] = [];
  readFrames(socket, 0, (read) => frames.push(read));
  socket.write(Buffer.concat([Buffer.from(PREFACE), frame(FRAME.settings, 0, 0)]));
  return { socket, frames };
}
