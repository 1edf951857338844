/** A WebSocket echo server on raw sockets (RFC 6455). */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { atEnd } from '../at-end.ts';
import { listen } from './http-upstream.ts';

export interface WebSocketUpstream {
  readonly url: string;
  readonly asked: readonly IncomingMessage[];
  /** Upgraded connections. */
  readonly sockets: readonly Socket[];
  /** Number of requests without an upgrade. */
  readonly plain: () => number;
}

/** @param refuse writes a response other than 101, and returns true if it did */
export async function startWebSocketUpstream(
  refuse: (request: IncomingMessage, socket: Socket, nth: number) => boolean = () => false,
): Promise<WebSocketUpstream> {
  const asked: IncomingMessage[] = [];
  const sockets: Socket[] = [];
  let plain = 0;
  const { url, server } = await listen((_request, response) => {
    plain += 1;
    response.end('plain');
  });
  server.on('upgrade', (request, duplex) => {
    const socket = duplex as Socket;
    socket.on('error', () => undefined);
    atEnd(() => {
      socket.destroy();
    });
    if (refuse(request, socket, asked.push(request))) return;
    sockets.push(socket);
    socket.write(
      [
        'HTTP/1.1 101 Switching Protocols',
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Accept: ${acceptOf(request)}`,
        'X-Of-Upstream: yes',
        ...(request.headers['sec-websocket-protocol'] === undefined ? [] : ['Sec-WebSocket-Protocol: chat']),
        '\r\n',
      ].join('\r\n'),
    );
    echo(socket);
  });
  return { url, asked, sockets, plain: () => plain };
}

/** RFC 6455 §4.2.2. */
function acceptOf({ headers }: IncomingMessage): string {
  const key = `${headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  return createHash('sha1').update(key).digest('base64');
}

function echo(socket: Socket): void {
  socket.on('end', () => socket.end());
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (let read = readFrame(bytes); read !== undefined; read = readFrame(bytes)) {
      bytes = bytes.subarray(read.length);
      socket.write(makeFrame(read.opcode, read.payload));
      if (read.opcode === 8) socket.end();
    }
  });
}

/** Reads one complete masked client frame (RFC 6455 §5.2). */
function readFrame(bytes: Buffer): { opcode: number; payload: Buffer; length: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 127;
  const at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at) return undefined;
  const size = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const length = at + 4 + size;
  if (bytes.length < length) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const payload = Buffer.from(bytes.subarray(at + 4, length));
  for (let i = 0; i < payload.length; i += 1) payload[i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return { opcode: (bytes[0] ?? 0) & 15, payload, length };
}

function makeFrame(opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head[0] = 128 | opcode;
  if (payload.length < 126) {
    head[1] = payload.length;
    return Buffer.concat([head.subarray(0, 2), payload]);
  }
  if (payload.length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(payload.length, 2);
    return Buffer.concat([head.subarray(0, 4), payload]);
  }
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([head, payload]);
}
