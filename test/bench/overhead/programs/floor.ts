// A minimal proxy in Node, the lower bound of the cost: node:http for clients, undici's dispatch for the upstream.
//
//   node floor.ts UPSTREAM

import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';

const pool = new Pool(process.argv[2] ?? '', { connections: 256, pipelining: 1 });
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host']);

class PassThrough implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const headers: string[] = [];
    const raw = controller.rawHeaders;
    if (Array.isArray(raw)) {
      for (let i = 0; i + 1 < raw.length; i += 2) {
        const name = String(raw[i]);
        if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, String(raw[i + 1]));
      }
    }
    this.#response.writeHead(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return;
    // Without an abort, the upstream connection would stay open after the client has left.
    const abort = (): void => controller.abort(new Error('the client has gone'));
    if (this.#response.destroyed) return abort();
    controller.pause();
    this.#response.once('close', abort);
    this.#response.once('drain', () => {
      this.#response.off('close', abort);
      controller.resume();
    });
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}

function headersOf({ rawHeaders }: IncomingMessage): string[] {
  const headers: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, rawHeaders[i + 1] ?? '');
  }
  return headers;
}

const server = createServer((request, response) => {
  const { method = 'GET', url: path = '/' } = request;
  const body = method === 'GET' ? null : request;
  pool.dispatch({ method, path, headers: headersOf(request), body }, new PassThrough(response));
});
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) console.log(`listening on http://127.0.0.1:${address.port}`);
});
