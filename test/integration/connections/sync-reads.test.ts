/** The operations of undici on a socket, in any order: all data is read once and in order, then the end. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { readSynchronously } from '../../../src/http/undici/sync-reads.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** What a parser does with a chunk: takes it all; returns some and pauses until later; or pauses first. */
const CONDUCTS = ['take', 'give back', 'pause'] as const;
type Conduct = (typeof CONDUCTS)[number];

async function pair(): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = (server.address() as AddressInfo | null) ?? { port: 0 };
  const near = connect(port, '127.0.0.1');
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  server.close();
  return { near, far };
}

/** Reads as undici's parser does. */
function readAll(socket: Socket, conduct: readonly Conduct[]): { readonly read: Buffer[]; isPaused: boolean } {
  const reader = { read: [] as Buffer[], isPaused: false };
  let turn = 0;
  const pause = (): void => {
    reader.isPaused = true;
    setImmediate(() => {
      reader.isPaused = false;
      readMore();
    });
  };
  const readMore = (): void => {
    while (!reader.isPaused) {
      const next = conduct[turn % conduct.length];
      turn += 1;
      if (next === 'pause') return pause();
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      const kept = next === 'take' ? chunk.length : Math.ceil(chunk.length / 2);
      reader.read.push(chunk.subarray(0, kept));
      if (kept === chunk.length) continue;
      socket.unshift(chunk.subarray(kept));
      return pause();
    }
  };
  socket.on('readable', readMore);
  readMore();
  return reader;
}

test('delivers all data once and in order, then the end, however it is read', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 8 }),
      fc
        .array(fc.constantFrom(...CONDUCTS), { minLength: 1, maxLength: 6 })
        .filter((conduct) => conduct.includes('take')),
      fc.boolean(),
      async (sizes, conduct, isSlow) => {
        const { near, far } = await pair();
        const { read } = readAll(near, conduct);
        readSynchronously(near);
        const ended = once(near, 'end');
        for (const [index, size] of sizes.entries()) {
          far.write(Buffer.alloc(size, index));
          if (isSlow) await new Promise(setImmediate);
        }
        far.end();
        await ended;
        expect(Buffer.concat(read).equals(Buffer.concat(sizes.map((size, index) => Buffer.alloc(size, index))))).toBe(
          true,
        );
        near.destroy();
      },
    ),
    { numRuns: 150 },
  );
});

test('delivers nothing ahead of data that was left unread', async () => {
  const { near, far } = await pair();
  onTestFinished(() => void near.destroy());
  onTestFinished(() => void far.destroy());
  let text = '';
  let isReading = false;
  near.on('readable', () => {
    if (!isReading) return;
    for (let chunk = near.read() as Buffer | null; chunk !== null; chunk = near.read() as Buffer | null) {
      text += chunk.toString();
    }
  });
  readSynchronously(near);
  far.write('first');
  await eventually(
    () => near.readableLength,
    (length) => length === 5,
  );
  isReading = true;
  far.write(', second');
  await eventually(
    () => text.length,
    (length) => length === 13,
  );
  expect(text).toBe('first, second');
});

test('hands the connection over as an ordinary readable socket', async () => {
  const { near, far } = await pair();
  onTestFinished(() => void near.destroy());
  onTestFinished(() => void far.destroy());
  const { read } = readAll(near, ['take']);
  readSynchronously(near);
  far.write('first');
  await once(near, 'readable');
  expect(Buffer.concat(read).toString()).toBe('first');

  near.removeAllListeners('readable');
  let text = '';
  far.write(', second');
  near.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  far.end(', third');
  await once(near, 'end');
  expect(text).toBe(', second, third');
});

test('delivers data synchronously, before any other tick', async () => {
  const { near, far } = await pair();
  onTestFinished(() => void near.destroy());
  onTestFinished(() => void far.destroy());
  const { read } = readAll(near, ['take']);
  readSynchronously(near);
  far.write('first');
  await once(near, 'readable');
  const { push } = near;
  const readWithin: number[] = [];
  near.push = (chunk) => {
    const takesMore = push(chunk);
    readWithin.push(read.length);
    return takesMore;
  };
  far.write('second');
  await once(near, 'readable');
  await new Promise(setImmediate);
  expect(readWithin).toEqual([2]);
});
