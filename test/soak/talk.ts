import type { Duplex } from 'node:stream';
import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import type { Heard } from './call.ts';
import { PATIENCE } from './call.ts';
import { requestAt } from './reach.ts';

export interface Talk {
  readonly heard: Heard;
  /** Something else was said back than what was said. */
  readonly isSpoiled: boolean;
}

/** Changes to a WebSocket, says some things that are said back, and goes. A change that is refused is an answer like any. */
export function talk(
  url: string,
  agent: Agent,
  { path, headers, random }: { path: string; headers: Readonly<Record<string, string>>; random: Random },
): Promise<Talk> {
  return new Promise((resolve) => {
    const settle = (heard: Heard, isSpoiled = false): void => {
      clearTimeout(patience);
      resolve({ heard, isSpoiled });
    };
    const asked = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'x',
    };
    const outgoing = requestAt(url, { path, agent, headers: { ...headers, ...asked } });
    const patience = setTimeout(() => {
      settle({ kind: 'lost', why: `no answer within ${PATIENCE} ms` });
      outgoing.destroy();
    }, PATIENCE);
    outgoing.on('error', (error) => settle({ kind: 'lost', why: error.message }));
    outgoing.on('response', (incoming) => {
      const status = incoming.statusCode ?? 0;
      const header = (name: string): string => String(incoming.headers[name] ?? '');
      incoming.on('error', () => settle({ kind: 'cut', status }));
      incoming.on('end', () => settle({ kind: 'answered', status, header, body: Buffer.alloc(0) }));
      incoming.resume();
    });
    outgoing.on('upgrade', (_incoming, socket, first: Buffer) => {
      clearTimeout(patience);
      const answered: Heard = { kind: 'answered', status: 101, header: () => '', body: Buffer.alloc(0) };
      void converse(socket, first, random).then((isSpoiled) => settle(answered, isSpoiled));
    });
    outgoing.end();
  });
}

/** Resolves when the connection has ended, whoever ended it, with whether what came back was anything but what was said. */
async function converse(socket: Duplex, first: Buffer, random: Random): Promise<boolean> {
  const said: Buffer[] = [];
  const heard: Buffer[] = [first];
  socket.on('data', (chunk: Buffer) => heard.push(chunk));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  for (let left = 1 + Math.floor(random() * 20); left > 0 && !socket.destroyed; left -= 1) {
    const words = Buffer.from(`${left} ${'words '.repeat(Math.floor(random() * 1000))}`);
    said.push(words);
    socket.write(words);
    await sleep(random() * 100);
  }
  socket.end();
  const patience = setTimeout(() => socket.destroy(), PATIENCE);
  await closed;
  clearTimeout(patience);
  const all = Buffer.concat(heard);
  return !Buffer.concat(said).subarray(0, all.length).equals(all);
}
