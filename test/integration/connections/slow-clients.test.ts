import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { heldBytes } from '../../support/heap.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openHalf, openRaw } from '../../support/clients/raw-socket.ts';
import { begin } from '../../support/clients/send.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import { readResponses } from '../../support/clients/strict-http.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const inFlight = 'tidegate_requests_in_flight{route="/"}';

describe('headers that do not arrive in time', () => {
  const yaml = 'limits: {headers: 200ms}\nupstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';

  test('are answered with 408', async () => {
    await runAttack({ yaml }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
      const [answer] = readResponses(await client.ended(), []);
      expect(answer).toMatchObject({ status: 408, isWhole: true });
      expect(answer?.body).toContain('"reason":"headers_timeout"');
      expect(reached()).toEqual([]);
    });
  });

  test('get no extra time by arriving a byte at a time, or on a connection that has served before', async () => {
    await runAttack({ yaml }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.write('GET /first HTTP/1.1\r\nHost: x\r\n\r\n');
      await client.until('GET /first');
      client.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
      const dripping = setInterval(() => client.write('x'), 20);
      onTestFinished(() => clearInterval(dripping));
      expect(readResponses(await client.ended(), [])).toMatchObject([{ status: 200 }, { status: 408 }]);
    });
  });

  test('that arrive after the 408 are not processed, as the 408 states', async () => {
    await runAttack({ yaml }, async ({ gate, reached }) => {
      const client = await openHalf(gate.url);
      client.socket.write('POST /pay HTTP/1.1\r\nHost: x\r\n');
      await eventually(client.received, (text) => text.includes('headers_timeout'));
      client.socket.write('Content-Length: 2\r\n\r\nok');
      await pause(100);
      client.socket.end('POST /pay HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok');
      await eventually(() => client.socket.closed, Boolean);
      expect(readResponses(client.received(), [])).toMatchObject([{ status: 408, isWhole: true }]);
      expect(reached()).toEqual([]);
    });
  });

  test('close a connection without a response when no byte was sent', async () => {
    await runAttack({ yaml }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      expect(await client.ended()).toBe('');
      expect(gate.requests().filter(({ status }) => status === 408)).toEqual([]);
    });
  });
});

test('answers 408 to a pause within a body, before anything is sent', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toContain('"reason":"body_idle"');
  expect(upstream.connections()).toBe(0);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 0,
  );
  expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
  expect(gate.requests()).toMatchObject([{ status: 408, reason: 'body_idle' }]);
});

test('aborts the upstream request when a streamed body pauses too long', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n');
  client.write(Buffer.alloc(100_000));
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 504 /);
  expect(answer).toMatch(/tidegate-outcome: unknown/i);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 0,
  );
  await eventually(
    () => upstream.stats().answered,
    ({ gone }) => gone === 1,
  );
});

test('serves a slow upload that never pauses for long, however long it takes', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
limits: {bodyIdle: 500ms}
upstreams: {api: {url: "${upstream.url}", timeout: 300ms, perTryTimeout: 300ms}}
`);
  for (const piece of [100, 20_000]) {
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const outgoing = begin(gate.url, '/echo', { method: 'POST', chunked: true }, ({ statusCode }) =>
        resolve(statusCode),
      );
      outgoing.on('error', reject);
      void (async () => {
        for (let i = 0; i < 5; i += 1) {
          outgoing.write(Buffer.alloc(piece));
          await pause(120);
        }
        outgoing.end();
      })();
    });
    expect(await answered).toBe(200);
  }
});

test('waits for the response from the end of a streamed upload, not from its last piece', async () => {
  const { url } = await listen((request) => void request.resume());
  const gate = await startTidegate(
    `upstreams: {api: {url: "${url}", timeout: 2s, retry: {attempts: 1, replayLimit: 8B}}}`,
  );
  const upload = begin(gate.url, '/', { method: 'PUT', chunked: true });
  const answered = once(upload, 'response');
  upload.write('a piece of it');
  await pause(1500);
  const endedAt = performance.now();
  upload.end();
  await answered;
  expect(performance.now() - endedAt).toBeGreaterThan(1900);
});

describe('an upload below the minimum rate', () => {
  const trickle = async (rate: string, length: number, burst: number) => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `limits: {bodyIdle: 1s, bodyRate: ${rate}}\nupstreams: {api: {url: "${upstream.url}"}}`,
    );
    const client = await openRaw(gate.url);
    client.write(`POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
    client.write(Buffer.alloc(burst));
    for (let i = burst; i < length && !client.socket.readableEnded; i += 1) {
      client.write('x');
      await pause(15);
    }
    return { upstream, gate, client };
  };

  test.each([
    ['a 408 before it is sent', 300, 0, 408],
    ['an unknown outcome as it is sent, however much came at first', 200_300, 200_000, 504],
  ])('gets %s', async (_, length, burst, status) => {
    const { upstream, gate, client } = await trickle('500B/s', length, burst);
    const answer = await client.ended();
    expect(answer.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
    expect(/tidegate-outcome: unknown/i.test(answer)).toBe(status === 504);
    expect(answer).toContain('"reason":"body_slow"');
    await eventually(
      () => gate.metric(inFlight),
      (count) => count === 0,
    );
    expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
    await eventually(
      () => upstream.stats().answered,
      ({ gone = 0 }) => gone === (burst === 0 ? 0 : 1),
    );
  });

  test('is served where no minimum rate is configured', async () => {
    const { client } = await trickle('0', 100, 0);
    expect(await client.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('is not the client’s fault if the upstream stops reading', async () => {
    let taken = 0;
    const upstream = await listen((request, response) => {
      request.on('end', () => response.end('taken'));
      const taking = setInterval(() => {
        taken += (request.read() as Buffer | null)?.length ?? 0;
      }, 100);
      response.on('close', () => clearInterval(taking));
    });
    const yaml = `limits: {bodyIdle: 300ms, bodyRate: 100MiB/s}`;
    const gate = await startTidegate(
      `${yaml}\nupstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s}}`,
    );
    const length = 2_000_000;
    const client = await openRaw(gate.url);
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
    client.write(Buffer.alloc(length));
    await client.until('taken', 30_000);
    expect(taken).toBe(length);
  });
});

test('closes a malformed connection whose client never closes its side', async () => {
  await runAttack({}, async ({ gate }) => {
    const { socket } = await openHalf(gate.url);
    socket.write('NONSENSE\r\n\r\n');
    await once(socket, 'end');
    const writing = setInterval(() => socket.write('x'), 10);
    onTestFinished(() => clearInterval(writing));
    await eventually(() => socket.closed, Boolean);
    expect(gate.requests().filter(({ reason }) => reason === 'malformed')).toHaveLength(1);
  });
});

describe('a client that does not read', () => {
  const yaml = (idle: string) =>
    `limits: {bodyIdle: ${idle}}\nupstreams: {api: {url: "{upstream}", streamIdle: ${idle}, retry: {attempts: 1}}}`;
  const LARGE = `HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n${'x'.repeat(60_000)}`;

  test('is disconnected when nothing has moved for the stream idle timeout', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end(Buffer.alloc(50_000_000)));
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", streamIdle: 300ms}}`);
    const client = await openRaw(gate.url);
    client.socket.pause();
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status: 200, cut: true });
  });

  test('is disconnected from an event stream too, though that may be silent for any time', async () => {
    let closed = false;
    const upstream = await listen((_request, response) => {
      response.on('close', () => (closed = true));
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 0\n\n');
      const more = (): void => {
        while (response.write(`data: ${'x'.repeat(60_000)}\n\n`));
        response.once('drain', more);
      };
      setTimeout(more, 700);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", streamIdle: 300ms}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.until('data: xx'); // after a silence longer than the stream idle timeout
    client.socket.pause();
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status: 200, cut: true });
    await eventually(() => closed, Boolean);
  });

  test('is disconnected even if the response has arrived completely from the upstream', async () => {
    const answer = (socket: Socket) => socket.write(LARGE);
    await runAttack({ yaml: yaml('300ms'), answer: (socket) => answer(socket) || true }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.socket.pause();
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000));
      await eventually(
        () => gate.requests().filter(({ cut }) => cut === true),
        ({ length }) => length === 1,
      );
      expect(gate.requests().length).toBeLessThan(1000);
    });
  });

  test('is disconnected when it leaves proxy responses unread', async () => {
    const routed = `${yaml('300ms')}\nroutes: [{path: /beside, upstream: api}, {path: /v1, upstream: api}]`;
    await runAttack({ yaml: routed }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.socket.pause();
      let closed = false;
      client.socket.on('error', () => (closed = true));
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(30_000));
      // Its writes fail once the other side has closed; a read would let the proxy continue.
      await eventually(() => {
        client.write('x');
        return closed;
      }, Boolean);
      expect(gate.requests().length).toBeLessThan(30_000);
    });
  });

  test('uses no memory: unread data stays with the upstream, and others are served', async () => {
    const chunk = Buffer.alloc(64 * 1024);
    let sent = 0;
    const upstream = await listen((request, response) => {
      if (request.url === '/small') return void response.end('small');
      const more = (): void => {
        do sent += chunk.length;
        while (response.write(chunk));
        response.once('drain', more);
      };
      more();
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const before = heldBytes();
    const clients = await Promise.all(Array.from({ length: 10 }, () => openRaw(gate.url)));
    for (const client of clients) {
      client.socket.pause();
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    }
    let last = -1;
    await eventually(
      async () => {
        await pause(200);
        return sent;
      },
      (now) => {
        const isStill = now > 0 && now === last;
        last = now;
        return isStill;
      },
    );
    expect(heldBytes() - before).toBeLessThan(10 * 600_000);
    const fresh = await fetch(`${gate.url}/small`);
    expect(await fresh.text()).toBe('small');
  });

  test('gets the whole response if it reads slowly but steadily', async () => {
    const SIZE = 12_000_000;
    const upstream = await startHttpUpstream((_n, response) => response.end(Buffer.alloc(SIZE)));
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", streamIdle: 500ms}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const reading = setInterval(() => {
      client.socket.resume();
      setImmediate(() => client.socket.pause());
    }, 10);
    onTestFinished(() => clearInterval(reading));
    const text = await client.ended(15_000);
    expect(text.length).toBeGreaterThan(SIZE);
    expect(gate.requests()[0]).not.toHaveProperty('cut');
  });
});

// Kernel socket options are visible on Linux only.
if (process.platform === 'linux') {
  test('enables TCP keep-alive, so that a vanished peer is noticed', async () => {
    const upstream = await startHttpUpstream(() => undefined);
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(
      () => upstream.hits,
      ({ length }) => length === 1,
    );
    const port = (number: number) => number.toString(16).toUpperCase().padStart(4, '0');
    const ours = `:${port(Number(new URL(gate.url).port))} `;
    const theirs = `:${port(client.socket.localPort ?? 0)} `;
    const timers = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .filter((line) => line.includes(ours) && line.includes(theirs) && line.indexOf(ours) < line.indexOf(theirs))
      .map((line) => line.trim().split(/\s+/)[5]?.slice(0, 2));
    // proc(5): 02 is the keep-alive timer. The kernel may list a connection twice if others end while it writes the table.
    expect(new Set(timers)).toEqual(new Set(['02']));
  });
}
