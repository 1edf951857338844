/** An endpoint that is there, and is not there, at an address of its own. */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Switchable {
  readonly url: string;
  readonly port: number;
  /** Requests so far, by their method. */
  readonly hits: () => readonly string[];
  /** What it does from now on. */
  answer(how: (request: IncomingMessage, response: ServerResponse) => void): void;
  /** Breaks all connections and refuses new ones. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Says 200 unless told otherwise. @param at an address, and a port if it has to be a certain one */
export async function startSwitchable({ host = '127.0.0.1', port = 0 } = {}): Promise<Switchable> {
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
  onTestFinished(close);
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
