import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FeedState } from '../../../src/admin/page/sse-client.js';
import { SseClient } from '../../../src/admin/page/sse-client.js';
import { eventually } from '../../support/proxy/tidegate.ts';

interface Server {
  readonly url: string;
  readonly heads: IncomingHttpHeaders[];
  answer: (response: ServerResponse) => void;
}

async function serve(answer: Server['answer']): Promise<Server> {
  const heads: IncomingHttpHeaders[] = [];
  const http = createServer((request, response) => {
    heads.push(request.headers);
    server.answer(response);
  });
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  const server: Server = { url: `http://127.0.0.1:${port}/api/events`, heads, answer };
  return server;
}

function follow(url: string, token?: () => string | undefined) {
  const events: (readonly [string, unknown])[] = [];
  const states: FeedState[] = [];
  const feed = new SseClient({
    url,
    token: token ?? (() => undefined),
    onEvent: (name, data) => events.push([name, data]),
    onState: (state) => states.push(state),
    random: () => 0,
  });
  onTestFinished(() => feed.close());
  return { feed, events, states, kinds: () => states.map(({ kind }) => kind) };
}

function open(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('event: status\ndata: {"a":1}\n\n');
}

describe('a feed', () => {
  test('passes events on as they arrive', async () => {
    const server = await serve(open);
    const { events, kinds } = follow(server.url);
    await eventually(
      () => events.length,
      (count) => count === 1,
    );
    expect(events).toEqual([['status', { a: 1 }]]);
    expect(kinds()).toEqual(['connecting', 'live']);
  });

  test('reconnects when the connection is lost, with growing delays after failures', async () => {
    const server = await serve((response) => {
      open(response);
      setTimeout(() => response.destroy(), 20);
    });
    const { events, states } = follow(server.url);
    await eventually(
      () => events.length,
      (count) => count >= 3,
    );
    const waits = (): number[] => states.flatMap((state) => (state.kind === 'lost' ? [state.retryIn] : []));
    expect(new Set(waits())).toEqual(new Set([50]));
    server.answer = (response) => void response.writeHead(503).end();
    const before = waits().length;
    await eventually(waits, (seen) => seen.length >= before + 4);
    expect(waits().slice(-2)).toEqual(
      waits()
        .slice(-2)
        .toSorted((a, b) => a - b),
    );
    expect(waits().at(-1)).toBeGreaterThan(100);
  });

  test('honors the Retry-After of a server with too many viewers', async () => {
    const server = await serve(
      (response) => void response.writeHead(503, { 'retry-after': '30' }).end('{"detail":"Full."}'),
    );
    const { states } = follow(server.url);
    const lost = await eventually(
      () => states.at(-1),
      (state) => state?.kind === 'lost',
    );
    expect(lost).toEqual({ kind: 'lost', why: 'Full.', retryIn: 30_000 });
  });

  test('stops on 401, and sends the token once it has one', async () => {
    const held: { token?: string } = {};
    const server = await serve((response) => void response.writeHead(401).end('{"detail":"Send the token."}'));
    const { feed, states, events } = follow(server.url, () => held.token);
    await eventually(
      () => states.at(-1),
      (state) => state?.kind === 'denied',
    );
    expect(states.at(-1)).toEqual({ kind: 'denied', status: 401, why: 'Send the token.' });
    await new Promise((resolve) => {
      setTimeout(resolve, 300);
    });
    expect(server.heads).toHaveLength(1);
    held.token = 'open sesame';
    server.answer = open;
    feed.restart();
    await eventually(
      () => events.length,
      (count) => count === 1,
    );
    expect(server.heads.at(-1)?.authorization).toBe('Bearer open sesame');
  });

  test('ends when it is closed', async () => {
    const server = await serve(open);
    const { feed, events, states } = follow(server.url);
    await eventually(
      () => events.length,
      (count) => count === 1,
    );
    feed.close();
    await new Promise((resolve) => {
      setTimeout(resolve, 300);
    });
    expect(server.heads).toHaveLength(1);
    expect(states.at(-1)).toEqual({ kind: 'live' });
  });
});
