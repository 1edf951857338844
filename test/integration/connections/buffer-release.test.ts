import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, IncomingMessage as PlainMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, createServer as listen, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Http1ServerRequest } from '../../../src/http/server/http1-server-request.ts';
import { writeAndRelease, releaseWrittenBuffers, markReleasable } from '../../../src/http/undici/buffer-release.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const SIZE = 64 * 1024;

/** A buffer that owns all of its memory, like one read from a socket. */
function makePiece(): Buffer {
  const piece = Buffer.from(new ArrayBuffer(SIZE));
  randomBytes(SIZE).copy(piece);
  return piece;
}

const isReleased = (piece: Buffer): boolean => piece.buffer instanceof ArrayBuffer && piece.buffer.detached;

/** A response to be written, and the same response as its client receives it. */
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

test('releases the memory of a written response buffer once the kernel has accepted it, and loses no byte', async () => {
  const { response, answer } = await openAnswer();
  const sent = createHash('sha256');
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    sent.update(piece);
    writeAndRelease(response, piece); // 25 MB, none of which the client has read yet
    await nextTurn(); // all writes of one tick are sent together
  }
  await eventually(
    () => isReleased(pieces[0] as Buffer),
    (given) => given,
  );
  expect(isReleased(pieces.at(-1) as Buffer)).toBe(false);
  response.end();
  const received = createHash('sha256');
  for await (const chunk of answer) received.update(chunk as Buffer);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  expect(pieces.every(isReleased)).toBe(true);
});

test('does not release a buffer that shares its memory with another', async () => {
  const { response, answer } = await openAnswer();
  const whole = makePiece();
  writeAndRelease(response, whole.subarray(0, SIZE / 2));
  writeAndRelease(response, Buffer.allocUnsafe(SIZE / 4)); // from Node's shared Buffer pool
  response.end();
  for await (const _ of answer);
  await nextTurn();
  expect(isReleased(whole)).toBe(false);
  expect(isReleased(Buffer.allocUnsafe(8))).toBe(false);
});

test('does not release buffers written through another wrapped write', async () => {
  const { response, answer } = await openAnswer();
  const kept: Buffer[] = [];
  const write = response.write.bind(response);
  response.write = ((chunk: Buffer, done?: () => void) => {
    kept.push(chunk);
    return write(chunk, done);
  }) as typeof response.write;
  const piece = makePiece();
  const text = piece.toString('latin1');
  writeAndRelease(response, piece);
  response.end();
  for await (const _ of answer);
  expect(kept.map((chunk) => chunk.toString('latin1'))).toEqual([text]);
});

test('leaves buffers that were never sent to the garbage collector', async () => {
  const { response, answer } = await openAnswer();
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    writeAndRelease(response, piece);
    await nextTurn();
  }
  answer.destroy();
  await once(response, 'close');
  expect(isReleased(pieces.at(-1) as Buffer)).toBe(false);
});

/** A connection as the proxy holds one to an upstream, and the upstream's end of it. */
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
  releaseWrittenBuffers(connection);
  return { connection, upstream };
}

const upload = new Http1ServerRequest(new Socket());

test('releases the memory of upload pieces once the upstream has taken them, and loses no byte', async () => {
  const { connection, upstream } = await openConnection();
  const sent = createHash('sha256');
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    sent.update('\r\n10000\r\n').update(piece);
    markReleasable(piece, upload);
    connection.cork(); // as undici does
    connection.write('\r\n10000\r\n', 'latin1');
    connection.write(piece);
    connection.uncork();
    await nextTurn();
  }
  await eventually(
    () => isReleased(pieces[0] as Buffer),
    (given) => given,
  );
  expect(isReleased(pieces.at(-1) as Buffer)).toBe(false); // unread
  connection.end();
  const received = createHash('sha256');
  for await (const chunk of upstream) received.update(chunk as Buffer);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  expect(pieces.every(isReleased)).toBe(true);
});

test('does not release upload pieces kept for a retry, with shared memory, or of a plain Node server', async () => {
  const { connection, upstream } = await openConnection();
  const kept = makePiece();
  connection.write(kept);
  const whole = makePiece();
  const half = whole.subarray(0, SIZE / 2);
  markReleasable(half, upload);
  connection.write(half);
  const theirs = makePiece();
  markReleasable(theirs, new PlainMessage(new Socket()) as Http1ServerRequest);
  connection.write(theirs);
  connection.end();
  for await (const _ of upstream);
  await nextTurn();
  expect([kept, whole, theirs].map(isReleased)).toEqual([false, false, false]);
});

test('leaves upload pieces that the upstream never took to the garbage collector', async () => {
  const { connection, upstream } = await openConnection();
  const pieces = Array.from({ length: 400 }, makePiece);
  for (const piece of pieces) {
    markReleasable(piece, upload);
    connection.write(piece);
    await nextTurn();
  }
  upstream.destroy();
  connection.destroy();
  await once(connection, 'close');
  expect(isReleased(pieces.at(-1) as Buffer)).toBe(false);
});
