import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, IncomingMessage as PlainMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, createServer as listen, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Http1Inbound } from '../../src/http/server/server-request.ts';
import { forwardPiece, giveBackWritten, letGoOf } from '../../src/http/undici/buffer-release.ts';
import { eventually } from '../support/tidegate.ts';

const SIZE = 64 * 1024;

/** As one that was read from a socket: all of its memory. */
function makePiece(): Buffer {
  const piece = Buffer.from(new ArrayBuffer(SIZE));
  randomBytes(SIZE).copy(piece);
  return piece;
}

const isGivenBack = (piece: Buffer): boolean => piece.buffer instanceof ArrayBuffer && piece.buffer.detached;

/** An answer that is to be written, and what its client is given of it. */
async function openAnswer(): Promise<{ response: ServerResponse; answer: IncomingMessage }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const asked = request({ port: (server.address() as AddressInfo).port }).end();
  asked.on('error', () => undefined);
  const [, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  response.flushHeaders();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  return { response, answer };
}

test('what the system has taken is given back, what it has not is not, and every byte arrives', async () => {
  const { response, answer } = await openAnswer();
  const sent = createHash('sha256');
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    sent.update(piece);
    forwardPiece(response, piece); // 25 MB, of which the client reads nothing yet
    await nextTurn(); // what is written in one turn goes out as one
  }
  await eventually(
    () => isGivenBack(pieces[0] as Buffer),
    (given) => given,
  );
  expect(isGivenBack(pieces.at(-1) as Buffer)).toBe(false);
  response.end();
  const received = createHash('sha256');
  for await (const chunk of answer) received.update(chunk as Buffer);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  expect(pieces.every(isGivenBack)).toBe(true);
});

test('what shares its memory with something else is left alone', async () => {
  const { response, answer } = await openAnswer();
  const whole = makePiece();
  forwardPiece(response, whole.subarray(0, SIZE / 2));
  forwardPiece(response, Buffer.allocUnsafe(SIZE / 4)); // of the pool of all Buffers
  response.end();
  for await (const _ of answer); // until all has come
  await nextTurn();
  expect(isGivenBack(whole)).toBe(false);
  expect(isGivenBack(Buffer.allocUnsafe(8))).toBe(false);
});

test('what goes through a write of somebody else is left to them', async () => {
  const { response, answer } = await openAnswer();
  const kept: Buffer[] = [];
  const write = response.write.bind(response);
  response.write = ((chunk: Buffer, done?: () => void) => {
    kept.push(chunk);
    return write(chunk, done);
  }) as typeof response.write;
  const piece = makePiece();
  const text = piece.toString('latin1');
  forwardPiece(response, piece);
  response.end();
  for await (const _ of answer); // until all has come
  expect(kept.map((chunk) => chunk.toString('latin1'))).toEqual([text]);
});

test('what never went out is left to the collector', async () => {
  const { response, answer } = await openAnswer();
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    forwardPiece(response, piece);
    await nextTurn();
  }
  answer.destroy();
  await once(response, 'close');
  expect(isGivenBack(pieces.at(-1) as Buffer)).toBe(false);
});

/** A connection as the proxy has one to an upstream, and the upstream's end of it. */
async function openConnection(): Promise<{ connection: Socket; upstream: Socket }> {
  const server = listen({ pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [upstream] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    connection.destroy();
    upstream.destroy();
    server.close();
  });
  connection.on('error', () => undefined);
  giveBackWritten(connection);
  return { connection, upstream };
}

const upload = new Http1Inbound(new Socket());

test('of an upload, what was let go of is given back when the upstream has taken it, and every byte arrives', async () => {
  const { connection, upstream } = await openConnection();
  const sent = createHash('sha256');
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    sent.update('\r\n10000\r\n').update(piece);
    letGoOf(piece, upload);
    connection.cork(); // as undici does
    connection.write('\r\n10000\r\n', 'latin1');
    connection.write(piece);
    connection.uncork();
    await nextTurn();
  }
  await eventually(
    () => isGivenBack(pieces[0] as Buffer),
    (given) => given,
  );
  expect(isGivenBack(pieces.at(-1) as Buffer)).toBe(false); // nobody has read it
  connection.end();
  const received = createHash('sha256');
  for await (const chunk of upstream) received.update(chunk as Buffer);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  expect(pieces.every(isGivenBack)).toBe(true);
});

test('what is kept to be sent again, shares its memory, or came to a server of somebody else’s is left alone', async () => {
  const { connection, upstream } = await openConnection();
  const kept = makePiece();
  connection.write(kept);
  const whole = makePiece();
  const half = whole.subarray(0, SIZE / 2);
  letGoOf(half, upload);
  connection.write(half);
  const theirs = makePiece();
  letGoOf(theirs, new PlainMessage(new Socket()) as Http1Inbound);
  connection.write(theirs);
  connection.end();
  for await (const _ of upstream); // until all has come
  await nextTurn();
  expect([kept, whole, theirs].map(isGivenBack)).toEqual([false, false, false]);
});

test('what the upstream never took is left to the collector', async () => {
  const { connection, upstream } = await openConnection();
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    letGoOf(piece, upload);
    connection.write(piece);
    await nextTurn();
  }
  upstream.destroy();
  connection.destroy();
  await once(connection, 'close');
  expect(isGivenBack(pieces.at(-1) as Buffer)).toBe(false);
});
