/** An endpoint at a fixed address that can be stopped and started. */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from '../at-end.ts';

export interface SwitchableUpstream {
  readonly url: string;
  readonly port: number;
  /** The methods of the requests so far. */
  readonly hits: () => readonly string[];
  /** Sets the handler of later requests. */
  answer(how: (request: IncomingMessage, response: ServerResponse) => void): void;
  /** Breaks all connections and refuses new ones. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Answers 200 by default. @param at the address, and optionally the port */
export async function startSwitchableUpstream({ host = '127.0.0.1', port = 0 } = {}): Promise<SwitchableUpstream> {
  const hits: string[] = [];
  let how = (_: IncomingMessage, response: ServerResponse): void => void response.end('fine');
  let server: Server | undefined;
  const open = async (at: number): Promise<number> => {
    server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      hits.push(request.method ?? '');
      how(request, response);
    });
    server.listen(at, host);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const close = async (): Promise<void> => {
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    server = undefined;
    await closed;
  };
  const own = await open(port);
  atEnd(close);
  return {
    url: `http://${host}:${own}`,
    port: own,
    hits: () => hits,
    answer: (next) => {
      how = next;
    },
    stop: close,
    start: async () => void (await open(own)),
  };
}
