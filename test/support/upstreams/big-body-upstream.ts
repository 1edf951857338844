/** Streams bodies of any size in both directions at minimal cost, to measure a proxy's memory and time. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export type BodyDirection = 'down' | 'up';
export type BodyFraming = 'length' | 'chunked';

export const MIB = 1024 * 1024;

/** Returns Tidegate's peak memory in bytes while `run` runs. @param admin its admin address */
export async function measurePeakMemory(admin: string, run: () => Promise<void>): Promise<number> {
  let peak = 0;
  const readMemory = async (): Promise<void> => {
    const exposition = await (await fetch(`${admin}/metrics`)).text();
    peak = Math.max(peak, Number(/^process_resident_memory_bytes (\S+)/m.exec(exposition)?.[1]));
  };
  const over = run().then(() => true);
  for (let isOver = false; !isOver; ) {
    await readMemory();
    isOver = await Promise.race([over, setTimeout(100, false)]);
  }
  await readMemory();
  return peak;
}

/** The pattern that every body repeats. Neighbouring pieces differ, so that a lost or doubled one is detected. */
const PIECE = Buffer.from(Uint8Array.from({ length: 64 * 1024 }, (_, i) => (i * 31 + (i >> 8) * 7) & 0xff));
const TWICE = Buffer.concat([PIECE, PIECE]);

/** Answers `GET /FRAMING/BYTES` with that many bytes, and other requests with the number of bytes received. */
export async function startBigBodyUpstream(): Promise<{ readonly url: string; readonly close: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    void serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Streams a body in one direction through a proxy. @throws if it does not arrive unchanged */
export async function streamBody(url: string, way: BodyDirection, framing: BodyFraming, length: number): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const reader = new Reader(socket);
  if (way === 'down') {
    socket.write(`GET /${framing}/${length} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const head = await reader.head();
    const received = await reader.body(head);
    if (!head.startsWith('HTTP/1.1 200 ') || received !== length) throw new Error(`${received} of ${length}: ${head}`);
  } else {
    const framingHeader = framing === 'length' ? `Content-Length: ${length}` : 'Transfer-Encoding: chunked';
    socket.write(`PUT / HTTP/1.1\r\nHost: x\r\n${framingHeader}\r\n\r\n`);
    await write(socket, framing, length);
    const head = await reader.head();
    const received = /\r\nX-Received: (\d+)\r\n/.exec(head)?.[1];
    if (received !== String(length)) throw new Error(`${received} of ${length}: ${head}`);
  }
  socket.destroy();
}

async function serve(socket: Socket): Promise<void> {
  const reader = new Reader(socket);
  for (;;) {
    const head = await reader.head();
    if (head === '') return;
    const [, framing, length] = /^GET \/(length|chunked)\/(\d+) /.exec(head) ?? [];
    if (length === undefined) {
      const received = await reader.body(head);
      socket.write(`HTTP/1.1 200 OK\r\nX-Received: ${received}\r\nContent-Length: 0\r\n\r\n`);
    } else {
      const framingHeader = framing === 'length' ? `Content-Length: ${length}` : 'Transfer-Encoding: chunked';
      socket.write(`HTTP/1.1 200 OK\r\n${framingHeader}\r\n\r\n`);
      await write(socket, framing === 'length' ? 'length' : 'chunked', Number(length));
    }
  }
}

async function write(socket: Socket, framing: BodyFraming, length: number): Promise<void> {
  let wake = (): void => undefined;
  socket.on('drain', () => wake());
  socket.on('close', () => wake());
  for (let left = length; left > 0 && socket.writable; left -= PIECE.length) {
    const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
    if (framing === 'chunked') socket.write(`${piece.length.toString(16)}\r\n`);
    socket.write(piece);
    if (framing === 'chunked') socket.write('\r\n');
    if (socket.writableNeedDrain) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  if (framing === 'chunked') socket.write('0\r\n\r\n');
}

/** Reads consecutive messages from a socket. */
class Reader {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.pause();
    socket.on('data', (chunk: Buffer) => {
      socket.pause();
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      this.#wake();
    });
    for (const event of ['end', 'close', 'error']) {
      socket.on(event, () => {
        this.#ended = true;
        this.#wake();
      });
    }
  }

  /** Reads a head; empty if the peer has closed. */
  async head(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\r\n\r\n');
      if (end >= 0) return this.#take(end + 4).toString('latin1');
      if (!(await this.#more())) return '';
    }
  }

  /** Reads a body. Returns its length as far as it was correct. */
  async body(head: string): Promise<number> {
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
    if (length !== undefined) return this.#sound(0, Number(length));
    if (!/\r\ntransfer-encoding: chunked\r\n/i.test(head)) return 0;
    for (let read = 0; ; ) {
      const size = Number.parseInt(await this.#line(), 16);
      if (size > 0) read += await this.#sound(read, size);
      await this.#line();
      if (!(size > 0)) return read;
    }
  }

  async #sound(from: number, length: number): Promise<number> {
    let read = 0;
    while (read < length) {
      if (this.#rest.length === 0 && !(await this.#more())) break;
      const piece = this.#take(Math.min(this.#rest.length, length - read));
      for (let at = 0; at < piece.length; at += PIECE.length) {
        const part = piece.subarray(at, at + PIECE.length);
        const offset = (from + read + at) % PIECE.length;
        const isSound = part.equals(TWICE.subarray(offset, offset + part.length));
        if (!isSound) throw new Error(`other bytes at ${from + read}`);
      }
      read += piece.length;
    }
    return read;
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\r\n');
      if (end >= 0) return this.#take(end + 2).toString('latin1');
      if (!(await this.#more())) return '';
    }
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  /** Waits for more bytes; false at the end. */
  async #more(): Promise<boolean> {
    const before = this.#rest.length;
    this.#socket.resume();
    while (this.#rest.length === before && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#rest.length > before;
  }
}
