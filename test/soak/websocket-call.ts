import type { Duplex } from 'node:stream';
import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/core/scalars.ts';
import type { CallResult } from './call.ts';
import { CALL_TIMEOUT } from './call.ts';
import { requestAt } from './proxy-connection.ts';

export interface WebSocketResult {
  readonly result: CallResult;
  /** The echo differs from the data sent. */
  readonly isCorrupted: boolean;
}

/** Opens a WebSocket, sends data that is echoed, and closes. A rejected upgrade is a result like any other. */
export function callWebSocket(
  url: string,
  agent: Agent,
  { path, headers, random }: { path: string; headers: Readonly<Record<string, string>>; random: Random },
): Promise<WebSocketResult> {
  return new Promise((resolve) => {
    const settle = (result: CallResult, isCorrupted = false): void => {
      clearTimeout(timeout);
      resolve({ result, isCorrupted });
    };
    const asked = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'x',
    };
    const outgoing = requestAt(url, { path, agent, headers: { ...headers, ...asked } });
    const timeout = setTimeout(() => {
      settle({ kind: 'lost', why: `no answer within ${CALL_TIMEOUT} ms` });
      outgoing.destroy();
    }, CALL_TIMEOUT);
    outgoing.on('error', (error) => settle({ kind: 'lost', why: error.message }));
    outgoing.on('response', (incoming) => {
      const status = incoming.statusCode ?? 0;
      const header = (name: string): string => String(incoming.headers[name] ?? '');
      incoming.on('error', () => settle({ kind: 'cut', status }));
      incoming.on('end', () => settle({ kind: 'answered', status, header, body: Buffer.alloc(0) }));
      incoming.resume();
    });
    outgoing.on('upgrade', (_incoming, socket, first: Buffer) => {
      clearTimeout(timeout);
      const answered: CallResult = { kind: 'answered', status: 101, header: () => '', body: Buffer.alloc(0) };
      void exchangeMessages(socket, first, random).then((isCorrupted) => settle(answered, isCorrupted));
    });
    outgoing.end();
  });
}

/** Resolves when the connection has ended, with whether the echo differs from the data sent. */
async function exchangeMessages(socket: Duplex, first: Buffer, random: Random): Promise<boolean> {
  const sent: Buffer[] = [];
  const received: Buffer[] = [first];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  for (let left = 1 + Math.floor(random() * 20); left > 0 && !socket.destroyed; left -= 1) {
    const words = Buffer.from(`${left} ${'words '.repeat(Math.floor(random() * 1000))}`);
    sent.push(words);
    socket.write(words);
    await sleep(random() * 100);
  }
  socket.end();
  const timeout = setTimeout(() => socket.destroy(), CALL_TIMEOUT);
  await closed;
  clearTimeout(timeout);
  const all = Buffer.concat(received);
  return !Buffer.concat(sent).subarray(0, all.length).equals(all);
}
