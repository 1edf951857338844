import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { heldBytes } from '../../support/heap.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import type { StrictResponse } from '../../support/clients/strict-http.ts';
import { readResponses } from '../../support/clients/strict-http.ts';
import { startStrictUpstream } from '../../support/upstreams/strict-upstream.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const post = (target: string, body: string, more = '') =>
  `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
const chunked = (target: string, body: string) =>
  `PUT ${target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

const summarize = (responses: readonly StrictResponse[]) =>
  responses.map(({ status, body }) => (status === 200 ? body : status));

const ROUTED = `
upstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}
routes: [{path: /v1, upstream: api}, {path: /beside, upstream: api}]
`;

/** Responds after this time, each time a third of it later. */
const slowly =
  (ms: number) =>
  (socket: { write: (text: string) => unknown }, { target }: { target: string }): boolean => {
    setTimeout(() => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\n\r\n${target}`), ms);
    return true;
  };

describe('requests pipelined on one connection', () => {
  test('are answered in order, each with its own response', async () => {
    await runAttack({}, async ({ gate }) => {
      const client = await openRaw(gate.url);
      const methods = ['GET', 'POST', 'PUT', 'HEAD', 'GET', 'POST', 'GET'];
      client.write(
        [
          get('/1') + post('/2', 'two') + chunked('/3', 'three') + get('/4').replace('GET', 'HEAD'),
          get('/5') + post('/6', '') + get('/7', 'Connection: close\r\n'),
        ].join(''),
      );
      const answers = readResponses(await client.ended(), methods);
      expect(summarize(answers)).toEqual([
        'GET /1 ',
        'POST /2 two',
        'PUT /3 three',
        '',
        'GET /5 ',
        'POST /6 ',
        'GET /7 ',
      ]);
    });
  });

  test('run one after another: no write overtakes an earlier one', async () => {
    let inFlight = 0;
    let most = 0;
    const answer = (socket: { write: (text: string) => unknown }): boolean => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      setTimeout(() => {
        inFlight -= 1;
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      }, 20);
      return true;
    };
    await runAttack({ answer }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(post('/pay', 'first') + post('/refund', 'second') + get('/balance', 'Connection: close\r\n'));
      expect(summarize(readResponses(await client.ended(), []))).toEqual(['', '', '']);
      expect(reached().map(({ target }) => target)).toEqual(['/pay', '/refund', '/balance']);
      expect(most).toBe(1);
    });
  });

  test('survive the rejection of one among them', async () => {
    await runAttack({ yaml: ROUTED }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(
        [
          ...[
            post('/elsewhere', 'read'),
            get('/v1/1'),
            get('/elsewhere'),
            post('/v1/2', 'two'),
            get('/v1/../x'),
            get('/v1/3'),
          ],
          ...[
            get('/v1', 'Expect: the best\r\n'),
            post('/elsewhere', 'read', ''),
            get('/v1/4', 'Connection: close\r\n'),
          ],
        ].join(''),
      );
      const answers = readResponses(await client.ended(), []);
      expect(summarize(answers)).toEqual([
        404,
        'GET /v1/1 ',
        404,
        'POST /v1/2 two',
        400,
        'GET /v1/3 ',
        417,
        404,
        'GET /v1/4 ',
      ]);
      expect(reached().map(({ target }) => target)).toEqual(['/v1/1', '/v1/2', '/v1/3', '/v1/4']);
    });
  });

  test('leave the connection usable after a rejection', async () => {
    await runAttack({ yaml: ROUTED }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      for (const request of [get('/elsewhere'), post('/elsewhere', 'read'), get('/v1/../x')]) {
        client.write(request);
        const before = client.received().length;
        await eventually(
          () => client.received().length,
          (length) => length > before,
        );
      }
      client.write(get('/v1', 'Connection: close\r\n'));
      expect(summarize(readResponses(await client.ended(), []))).toEqual([404, 404, 400, 'GET /v1 ']);
    });
  });

  test('are not read after one with ambiguous framing', async () => {
    await runAttack({}, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(`${get('/1')}GET /2 HTTP/1.1\r\n\r\n${get('/3')}`);
      expect(summarize(readResponses(await client.ended(), []))).toEqual(['GET /1 ', 400]);
      await pause(50);
      expect(gate.requests().filter(({ path }) => path === '/3')).toEqual([]);
      expect(reached().map(({ target }) => target)).toEqual(['/1']);
    });
  });

  test('are not sent after the last request of a connection', async () => {
    await runAttack({ answer: slowly(50) }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(get('/1') + get('/2', 'Connection: close\r\n') + get('/3'));
      expect(summarize(readResponses(await client.ended(), []))).toEqual(['/1', '/2']);
      await pause(50);
      expect(reached().map(({ target }) => target)).toEqual(['/1', '/2']);
    });
  });

  test('are sent in full when a long one has arrived before its turn', async () => {
    const yaml = 'limits: {bodyIdle: 500ms}\nupstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';
    await runAttack({ yaml, answer: slowly(100) }, async ({ gate, reached, upstream }) => {
      for (const size of [65_536, 65_537, 70_000, 100_000, 130_000]) {
        const client = await openRaw(gate.url);
        client.write(
          get('/1') + chunked('/2', 'x'.repeat(size)) + post('/3', 'y'.repeat(size), 'Connection: close\r\n'),
        );
        expect([size, ...summarize(readResponses(await client.ended(), []))]).toEqual([size, '/1', '/2', '/3']);
        expect(reached().map(({ body }) => body.length)).toEqual([0, size, size]);
        upstream.forget();
      }
    });
  });

  test('may be split at any byte', async () => {
    await runAttack({}, async ({ gate }) => {
      const client = await openRaw(gate.url);
      const bytes = get('/1') + post('/2', 'two') + chunked('/3', 'three') + get('/4', 'Connection: close\r\n');
      for (let at = 0; at < bytes.length; at += 3) {
        client.write(bytes.slice(at, at + 3));
        await new Promise(setImmediate);
      }
      const answers = readResponses(await client.ended(), []);
      expect(summarize(answers)).toEqual(['GET /1 ', 'POST /2 two', 'PUT /3 three', 'GET /4 ']);
    });
  });

  test('are all answered, however many they are', async () => {
    await runAttack({ yaml: ROUTED }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      const count = 300;
      const asked = Array.from({ length: count }, (_, i) =>
        i % 3 === 0 ? post(`/v1/${i}`, `${i}`) : get(i % 3 === 1 ? '/x' : '/v1'),
      );
      client.write(asked.join('') + get('/v1/last', 'Connection: close\r\n'));
      const answers = summarize(readResponses(await client.ended(15_000), []));
      expect(answers).toHaveLength(count + 1);
      expect(answers.at(-1)).toBe('GET /v1/last ');
      for (let i = 0; i < count; i += 3) {
        expect(answers.slice(i, i + 3)).toEqual([`POST /v1/${i} ${i}`, 404, 'GET /v1 ']);
      }
    });
  });

  test('are not read without bound while the first waits for its response', async () => {
    let answerFirst: (() => void) | undefined;
    const answer = (socket: { write: (text: string) => unknown }): boolean => {
      if (answerFirst !== undefined) return false;
      answerFirst = () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst');
      return true;
    };
    await runAttack({ answer }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      const flood = Buffer.from(get('/x', 'A: b\r\n').repeat(10_000) + post('/y', 'body').repeat(10_000));
      client.write(get('/first'));
      await eventually(reached, ({ length }) => length === 1);
      const before = heldBytes();
      client.write(flood);
      for (let i = 0; i < 20; i += 1) await pause(10);
      // The test wrote the requests themselves: the rest is what the proxy keeps, and would be some 80 MB.
      expect(heldBytes() - before - client.socket.writableLength).toBeLessThan(20_000_000);
      expect(reached()).toHaveLength(1);
      answerFirst?.();
      await client.until('first');
      await eventually(reached, ({ length }) => length > 100);
      client.socket.destroy();
    });
  });
});

describe('malformed data after valid requests', () => {
  test.each([
    ['nonsense', 'NONSENSE\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 405],
    ['a malformed body', 'POST /bad HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
  ])('is answered after their responses: %s', async (_, bytes, status) => {
    await runAttack({ answer: slowly(60) }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(post('/pay', 'first') + get('/2') + bytes);
      const answers = readResponses(await client.ended(), []);
      expect(summarize(answers)).toEqual(['/pay', '/2', status]);
      expect(answers.every(({ isWhole }) => isWhole)).toBe(true);
      expect(reached().map(({ target }) => target)).toEqual(['/pay', '/2']);
    });
  });

  test('is answered once, however much of it arrives', async () => {
    await runAttack({ answer: slowly(100) }, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.write(get('/1'));
      for (let i = 0; i < 20; i += 1) {
        client.write(`NONSENSE ${'x'.repeat(1000)}\r\n\r\n`);
        await pause(10);
      }
      expect(summarize(readResponses(await client.ended(), []))).toEqual(['/1', 400]);
      expect(gate.requests().filter(({ reason }) => reason === 'malformed')).toHaveLength(1);
    });
  });

  test('that are headers that never end: earlier requests are served, later ones are not', async () => {
    const yaml = 'limits: {headers: 200ms}\nupstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';
    await runAttack({ yaml, answer: slowly(1500) }, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(`${post('/pay', 'first')}POST /late HTTP/1.1\r\nHost: x\r\n`);
      await client.until('/pay');
      client.write('Content-Length: 4\r\n\r\nlate');
      expect(summarize(readResponses(await client.ended(), []))).toEqual(['/pay', 408]);
      expect(reached().map(({ target }) => target)).toEqual(['/pay']);
    });
  });
});

test('delivers the last response to a client that keeps sending', async () => {
  await runAttack({}, async ({ gate }) => {
    const client = await openRaw(gate.url);
    client.socket.pause();
    client.write(get('/last', 'Connection: close\r\n'));
    for (let i = 0; i < 50; i += 1) {
      client.write('more'.repeat(1000));
      await pause(4);
    }
    client.socket.resume();
    expect(summarize(readResponses(await client.ended(), []))).toEqual(['GET /last ']);
  });
});

test('reports a pipelined write with a malformed body as unknown where it may have taken effect', async () => {
  const answer = (
    socket: { destroy: () => void; write: (text: string) => unknown },
    { target }: { target: string },
  ) => {
    if (target === '/reset') socket.destroy();
    else setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), 100);
    return true;
  };
  const upstream = await startStrictUpstream(answer);
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  const first = await openRaw(gate.url);
  first.write(post('/reset', '{}', 'Idempotency-Key: k\r\n'));
  await first.until('unknown');
  const second = await openRaw(gate.url);
  const malformed = 'Host: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nZZ\r\n';
  second.write(`${get('/slow')}POST /reset HTTP/1.1\r\n${malformed}`);
  const answers = readResponses(await second.ended(), []);
  expect(answers.map(({ status }) => status)).toEqual([200, 504]);
  expect(second.received()).toMatch(/tidegate-outcome: unknown/i);
});

test('does not truncate a long response for a CONNECT after it', async () => {
  const SIZE = 5_000_000;
  const answer = (socket: { write: (text: string) => unknown }): boolean => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE}\r\n\r\n${'x'.repeat(SIZE)}`);
    return true;
  };
  await runAttack({ answer }, async ({ gate }) => {
    const client = await openRaw(gate.url);
    client.write(`${get('/long')}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
    const [long, connect] = readResponses(await client.ended(15_000), []);
    expect(long).toMatchObject({ status: 200, isWhole: true });
    expect(long?.body).toHaveLength(SIZE);
    expect(connect).toMatchObject({ status: 405, isWhole: true });
  });
});

test('can close the process with a CONNECT after an unanswered request', async () => {
  const upstream = await startStrictUpstream(() => true);
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", perTryTimeout: 1h, timeout: 1h}}`);
  const client = await openRaw(gate.url);
  client.write(`${get('/never')}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
  await eventually(
    () => upstream.requests,
    ({ length }) => length === 1,
  );
  await gate.close();
  expect(await client.ended()).toBe('');
});

test('does not mix a response in progress with the error for the rest of its request', async () => {
  const answer = (socket: { write: (text: string) => unknown }): boolean => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome');
    return true;
  };
  await runAttack({ answer }, async ({ gate }) => {
    const client = await openRaw(gate.url);
    client.write(post('/1', 'x'));
    await client.until('some');
    client.write('NONSENSE\r\n\r\n');
    await pause(50);
    client.socket.end();
    await once(client.socket, 'close');
    expect(readResponses(client.received(), [])).toMatchObject([{ status: 200, body: 'some', isWhole: false }]);
  });
});
