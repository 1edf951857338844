import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { begin } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

describe('server-sent events', () => {
  test('arrive one by one, and may pause for any time', async () => {
    const headSeen = Promise.withResolvers<undefined>();
    const firstSeen = Promise.withResolvers<undefined>();
    const upstream = await listen(async (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
      response.flushHeaders();
      await headSeen.promise;
      await pause(300);
      response.write('data: one\n\n');
      await firstSeen.promise;
      await pause(700);
      response.end('data: two\n\n');
    });
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", streamIdle: 250ms, perTryTimeout: 250ms}}`,
    );
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.until('text/event-stream');
    expect(client.received()).not.toContain('data:');
    headSeen.resolve(undefined);
    await client.until('data: one');
    expect(client.received()).not.toContain('data: two');
    expect(gate.view().limits[0]?.inFlight).toBe(1);
    firstSeen.resolve(undefined);
    await client.until('data: two');
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status: 200, outcome: 'forwarded' });
    expect(line).not.toHaveProperty('cut');
  });
});

describe('each event arrives before the next is sent', () => {
  test.each([
    ['in chunks', 'Transfer-Encoding: chunked', (event: string) => `${event.length.toString(16)}\r\n${event}\r\n`],
    ['until the connection ends', 'Cache-Control: no-store', (event: string) => event],
    ['in a fixed length', `Content-Length: ${30 * 'data: 99\n\n'.length}`, (event: string) => event],
  ])('%s', async (_, framing, frame) => {
    let say: (text: string) => void = () => undefined;
    const upstream = await startRawUpstream((socket) => {
      say = (text) => socket.write(text);
      say(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${framing}\r\n\r\n`);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n');
    await client.until('\r\n\r\n');
    for (let i = 0; i < 30; i += 1) {
      const event = `data: ${String(i).padStart(2, '0')}\n\n`;
      say(frame(event));
      await client.until(event);
    }
    expect(client.received().match(/data: \d+/g)).toHaveLength(30);
  });
});

describe('any other stream', () => {
  test('is forwarded piece by piece, its head first', async () => {
    const upstream = await listen(async (_request, response) => {
      response.writeHead(200, { 'X-Head': 'yes' });
      response.flushHeaders();
      for (const piece of ['one', 'two']) {
        await pause(200);
        response.write(piece);
      }
      await pause(200);
      response.end('three');
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.until('X-Head: yes');
    expect(client.received()).not.toContain('one');
    await client.until('one');
    expect(client.received()).not.toContain('two');
    await client.until('two');
    expect(client.received()).not.toContain('three');
    await client.until('three');
  });

  test('is cut when it pauses longer than the stream idle timeout', async () => {
    let closed = false;
    const upstream = await listen((_request, response) => {
      response.on('close', () => (closed = true));
      response.writeHead(200, { 'Content-Length': '100' }).write('some');
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", streamIdle: 200ms}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await client.ended()).toMatch(/some$/);
    await eventually(() => closed, Boolean);
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ cut: true, level: 'warn', cause: 'STREAM_IDLE' });
  });

  test('counts as in flight until it has ended', async () => {
    let finish = (): void => undefined;
    const upstream = await listen((_request, response) => {
      response.writeHead(200).write('some');
      finish = () => response.end();
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await client.until('some');
    expect(gate.view().limits[0]?.inFlight).toBe(1);
    finish();
    await client.ended();
    expect(gate.view().limits[0]?.inFlight).toBe(0);
  });
});

describe('backpressure', () => {
  const SIZE = 50 * 1024 * 1024;

  test('stops reading from the upstream while the client reads slowly', async () => {
    let sent = 0;
    const upstream = await listen((_request, response) => {
      response.writeHead(200, { 'Content-Length': String(SIZE) });
      const chunk = Buffer.alloc(64 * 1024);
      const more = (): void => {
        while (sent < SIZE) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const outgoing = begin(gate.url, '/', {});
    const responded = once(outgoing, 'response');
    outgoing.end();
    const [incoming] = (await responded) as [IncomingMessage];
    incoming.pause();
    let before = -1;
    await eventually(
      () => sent,
      (now) => {
        const settled = now === before;
        before = now;
        return settled;
      },
    );
    await pause(300);
    // The buffers of four sockets, and no more.
    expect(sent).toBeLessThan(SIZE / 2);
    let received = 0;
    incoming.on('data', (chunk: Buffer) => (received += chunk.length));
    incoming.resume();
    await once(incoming, 'end');
    expect(received).toBe(SIZE);
  });

  test('stops reading from the client while the upstream reads slowly', async () => {
    let request: IncomingMessage | undefined;
    const upstream = await listen((incoming, response) => {
      request = incoming;
      incoming.on('end', () => response.end('done'));
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", perTryTimeout: 10s}}`);
    let sent = 0;
    const outgoing = begin(gate.url, '/', { method: 'POST', headers: ['Content-Length', String(SIZE)] });
    const responded = once(outgoing, 'response');
    const chunk = Buffer.alloc(64 * 1024);
    const more = (): void => {
      while (sent < SIZE) {
        sent += chunk.length;
        if (!outgoing.write(chunk)) return void outgoing.once('drain', more);
      }
      outgoing.end();
    };
    more();
    await eventually(
      () => request,
      (seen) => seen !== undefined,
    );
    await pause(500);
    expect(sent).toBeLessThan(SIZE / 2);
    let received = 0;
    request?.on('data', (piece: Buffer) => (received += piece.length));
    const [incoming] = (await responded) as [IncomingMessage];
    incoming.resume();
    expect(incoming.statusCode).toBe(200);
    expect(received).toBe(SIZE);
  });
});
