/** Malformed upstream responses become a 502 or 504 that fits the request, or a visibly truncated response. */
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import type { AttackTarget } from '../../support/proxy/attack-harness.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import type { StrictResponse } from '../../support/clients/strict-http.ts';
import { readResponses } from '../../support/clients/strict-http.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** What the upstream does with the connection after it has sent the bytes. */
type Ending = 'close' | 'reset' | 'hold';

const sendOn = (socket: Socket, bytes: string, ending: Ending): void => {
  if (bytes !== '') socket.write(Buffer.from(bytes, 'latin1'));
  if (ending === 'close') socket.end();
  if (ending === 'reset') setTimeout(() => socket.resetAndDestroy(), 5);
};

/**
 * The upstream `api` only fails, so a parallel client uses `other`: clients of `api` would rightly get errors. Observe
 * mode rejects nothing because of the failures.
 */
const broken = (more = '') => `
mode: observe
upstreams:
  api: {url: "{upstream}", retry: {attempts: 1}${more}}
  other: {url: "{other}"}
routes: [{path: /, upstream: api}, {path: /beside, upstream: other}]
`;

/** All responses on a connection of its own, until that closes. */
async function ask({ gate }: AttackTarget, method: string, target = '/'): Promise<StrictResponse[]> {
  const client = await openRaw(gate.url);
  const body = method === 'POST' ? 'Content-Length: 4\r\n\r\nbody' : '\r\n';
  client.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${body}`);
  return readResponses(await client.ended(15_000), [method]);
}

/** Expects that a safe request has failed, and that a write may have happened. */
function expectReported(method: string, answers: readonly StrictResponse[], name: string): void {
  const [answer] = answers;
  const problem = JSON.parse(answer?.body ?? '') as Record<string, unknown>;
  expect([name, answers.length, answer?.isWhole]).toEqual([name, 1, true]);
  if (method === 'POST') {
    expect([name, answer?.status, problem['outcome']]).toEqual([name, 504, 'unknown']);
    expect(answer?.headers).toContain('Tidegate-Outcome');
  } else {
    expect([name, answer?.status, problem['outcome']]).toEqual([name, 502, undefined]);
  }
  const proxyStatus = answer?.headers[answer.headers.indexOf('Proxy-Status') + 1];
  expect(proxyStatus).toMatch(/^tidegate; error=\w+; details="\w+"$/);
}

const OK = 'HTTP/1.1 200 OK\r\n';

describe('a malformed head is a 502 for safe requests, and an unknown outcome for others', () => {
  const heads: readonly (readonly [name: string, bytes: string, ending?: Ending])[] = [
    ['nothing', ''],
    ['nothing, and a reset', '', 'reset'],
    ['nonsense', 'nonsense\r\n\r\n'],
    ['nonsense, and no end', 'nonsense\r\n\r\n', 'hold'],
    ['a page without a head', '<html>Service unavailable</html>\r\n\r\n'],
    ['TLS', '\x15\x03\x01\x00\x02\x02\x46'],
    ['a request', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['half a head', `${OK}Content-Le`],
    ['half a head, and a reset', `${OK}Content-Le`, 'reset'],
    ['no status', 'HTTP/1.1 abc\r\n\r\n'],
    ['a short status', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a long status', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a negative status', 'HTTP/1.1 -20 OK\r\n\r\n'],
    ['a status below all there are', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['status 0', 'HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n', 'hold'],
    ['another protocol', 'ICY 200 OK\r\n\r\n'],
    ['another version', 'HTTP/3.0 200 OK\r\n\r\n'],
    ['a version of another protocol', 'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok', 'hold'],
    ['a version of old', 'HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok', 'hold'],
    ['an interim answer of another version', 'HTTP/2.0 100 Continue\r\n\r\n', 'hold'],
    // Valid, but not to llhttp, which allows only spaces after a length.
    ['a length with a tab behind it', `${OK}Content-Length: 2\t\r\n\r\nok`],
    ['two lengths', `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ['a list of lengths', `${OK}Content-Length: 1, 2\r\n\r\nab`],
    ['a negative length', `${OK}Content-Length: -1\r\n\r\nab`],
    ['a length with a plus', `${OK}Content-Length: +1\r\n\r\na`],
    ['a hexadecimal length', `${OK}Content-Length: 0x1\r\n\r\na`],
    ['a length beyond 64 bits', `${OK}Content-Length: 99999999999999999999\r\n\r\na`],
    ['a length and chunks', `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks and a length', `${OK}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n`],
    ['a space before the colon', `${OK}X-A : 1\r\nContent-Length: 0\r\n\r\n`],
    ['a header without a colon', `${OK}X-A\r\nContent-Length: 0\r\n\r\n`],
    ['a header without a name', `${OK}: 1\r\nContent-Length: 0\r\n\r\n`],
    ['a null byte', `${OK}X-A: \0\r\nContent-Length: 0\r\n\r\n`],
    ['a control character', `${OK}X-A: \x01\r\nContent-Length: 0\r\n\r\n`],
    ['a bare CR', `${OK}X-A: 1\rX-B: 2\r\nContent-Length: 0\r\n\r\n`],
    ['headers larger than anybody needs', `${OK}X-A: ${'x'.repeat(200_000)}\r\n\r\n`],
    ['more headers than anybody needs', `${OK}${'X-A: 1\r\n'.repeat(20_000)}\r\n`],
    ['an upgrade nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    ['a 1xx and then nothing', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
  ];

  test.each(['GET', 'HEAD', 'POST'])('%s', async (method) => {
    const answer = (socket: Socket, { target }: { target: string }) => {
      const [, bytes = '', ending] = heads[Number(target.slice(1))] ?? [];
      sendOn(socket, bytes, ending ?? 'close');
      return true;
    };
    await runAttack({ yaml: broken(), answer }, async (attack) => {
      const tryHead = async ([name]: (typeof heads)[number], i: number): Promise<void> => {
        const answers = await ask(attack, method, `/${i}`);
        if (method === 'HEAD') expect([name, answers[0]?.status]).toEqual([name, 502]);
        else expectReported(method, answers, name);
      };
      await Promise.all(heads.map(tryHead));
    });
  });

  test('cuts an endless head, however slowly it arrives', async () => {
    const answer = (socket: Socket, { target }: { target: string }) => {
      socket.write(OK);
      const line = target === '/fast' ? `X-A: ${'x'.repeat(1000)}\r\n` : 'X-A: 1\r\n';
      const dripping = setInterval(() => socket.write(line), target === '/fast' ? 1 : 20);
      socket.on('close', () => clearInterval(dripping));
      return true;
    };
    await runAttack({ yaml: broken(', perTryTimeout: 1s'), answer }, async ({ gate }) => {
      expect((await send(gate.url, '/fast')).json()).toMatchObject({ status: 502 });
      expect((await send(gate.url, '/slow')).json()).toMatchObject({ status: 504, reason: 'timeout' });
    });
  });

  test('cuts endless 1xx responses', async () => {
    const answer = (socket: Socket) => {
      const dripping = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 5);
      socket.on('close', () => clearInterval(dripping));
      return true;
    };
    await runAttack({ yaml: broken(', perTryTimeout: 300ms'), answer }, async ({ gate }) => {
      expect((await send(gate.url, '/')).json()).toMatchObject({ status: 504, reason: 'timeout' });
    });
  });
});

describe('a malformed body is cut at its first invalid byte', () => {
  const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`;

  test.each<[name: string, bytes: string, ending?: Ending]>([
    ['less than its length', `${OK}Content-Length: 10\r\n\r\nhello`],
    ['less than its length, and a reset', `${OK}Content-Length: 10\r\n\r\nhello`, 'reset'],
    ['a chunk without a size', `${chunked}\r\n\r\n`, 'hold'],
    ['a chunk with an invalid size', `${chunked}xyz\r\n`, 'hold'],
    ['a chunk with a negative size', `${chunked}-1\r\n`, 'hold'],
    ['a chunk whose size exceeds 64 bits', `${chunked}fffffffffffffffff\r\n`, 'hold'],
    ['a chunk longer than its size', `${chunked}1\r\nxyz\r\n0\r\n\r\n`, 'hold'],
    ['a chunk shorter than its size', `${chunked}10\r\nxyz`],
    ['no last chunk', chunked],
    ['no last chunk, and a reset', chunked, 'reset'],
    ['no end after the last chunk', `${chunked}0\r\n`],
    ['half a trailer', `${chunked}0\r\nX-Sum: `],
    ['an invalid trailer', `${chunked}0\r\nnonsense\r\n\r\n`, 'hold'],
    ['a length among the trailers', `${chunked}0\r\nContent-Length: 5\r\n\r\n`, 'hold'],
    ['an oversized trailer', `${chunked}0\r\nX-Sum: ${'x'.repeat(200_000)}\r\n\r\n`, 'hold'],
  ])('%s', async (_, bytes, ending) => {
    const answer = (socket: Socket) => {
      sendOn(socket, bytes, ending ?? 'close');
      return true;
    };
    await runAttack({ yaml: broken(), answer }, async (attack) => {
      for (const method of ['GET', 'POST']) {
        const answers = await ask(attack, method);
        expect(answers).toMatchObject([{ status: 200, isWhole: false }]);
        expect(answers[0]?.body).toContain('hello');
      }
      const lines = await eventually(
        () => attack.gate.requests().filter(({ path }) => path === '/'),
        ({ length }) => length === 2,
      );
      expect(lines).toMatchObject([
        { status: 200, cut: true, level: 'warn' },
        { status: 200, cut: true, level: 'warn' },
      ]);
    });
  });

  test.each([
    ['extensions of a chunk', `5;${'x'.repeat(1000)}`, 'x'.repeat(1000)],
    ['zeros before the size of a chunk', '0', '0'.repeat(1000)],
    ['trailers', '0\r\n', `X-${'x'.repeat(500)}: 1\r\n`],
  ])('%s without end are cut once no body byte has arrived for the stream idle timeout', async (_, first, more) => {
    const answer = (socket: Socket) => {
      socket.write(chunked + first);
      const dripping = setInterval(() => socket.write(more), 5);
      socket.on('close', () => clearInterval(dripping));
      return true;
    };
    const yaml = 'upstreams: {api: {url: "{upstream}", streamIdle: 300ms, retry: {attempts: 1}}}';
    await runAttack({ yaml, answer }, async (attack) => {
      expect(await ask(attack, 'GET')).toMatchObject([{ status: 200, isWhole: false }]);
    });
  });
});

describe('more than one response', () => {
  test.each([
    ['bytes after its length', `${OK}Content-Length: 5\r\n\r\nhello and more`],
    ['bytes after its last chunk', `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nand more`],
    ['a second response', `${OK}Content-Length: 5\r\n\r\nhello${OK}Content-Length: 6\r\n\r\nstolen`],
    ['a second head', `${OK}Content-Length: 5\r\n\r\nhello${OK}Content-Length: 6\r\n\r\n`],
  ])('%s reaches neither this client nor the next', async (_, bytes) => {
    const answer = (socket: Socket, { target }: { target: string }) => {
      if (target === '/next') return false;
      sendOn(socket, bytes, 'hold');
      return true;
    };
    await runAttack({ yaml: broken(', connections: 1'), answer }, async (attack) => {
      for (let i = 0; i < 5; i += 1) {
        expect(await ask(attack, 'GET')).toMatchObject([{ status: 200, body: 'hello', isWhole: true }]);
        expect((await send(attack.gate.url, '/next')).body.toString()).toBe('GET /next ');
      }
    });
  });

  test('is not delivered when the second arrives later, between requests', async () => {
    const answer = (socket: Socket, { target }: { target: string }) => {
      if (target === '/next') return false;
      socket.write(`${OK}Content-Length: 5\r\n\r\nhello`);
      setTimeout(() => socket.write(`${OK}Content-Length: 6\r\n\r\nstolen`), 20);
      return true;
    };
    await runAttack({ yaml: broken(), answer }, async (attack) => {
      for (let i = 0; i < 5; i += 1) {
        expect(await ask(attack, 'GET')).toMatchObject([{ status: 200, body: 'hello' }]);
        await new Promise((resolve) => {
          setTimeout(resolve, 40);
        });
        expect((await send(attack.gate.url, '/next')).body.toString()).toBe('GET /next ');
      }
    });
  });

  test.each(['HEAD /', 'GET /204', 'GET /304'])(
    'does not take a body where none is allowed (%s) for a response',
    async (line) => {
      const [method = '', target = ''] = line.split(' ');
      const status = target === '/' ? 200 : Number(target.slice(1));
      const answer = (socket: Socket, request: { target: string }) => {
        if (request.target !== target) return false;
        socket.write(`HTTP/1.1 ${status} Odd\r\nContent-Length: 5\r\n\r\nhello`);
        return true;
      };
      await runAttack({ yaml: broken(), answer }, async ({ gate }) => {
        for (let i = 0; i < 3; i += 1) {
          const answered = await send(gate.url, target, { method });
          expect([answered.status, answered.body.toString()]).toEqual([status, '']);
          expect((await send(gate.url, '/next')).body.toString()).toBe('GET /next ');
        }
      });
    },
  );
});

describe('a response that breaks off at any byte', () => {
  const body = ['1\r\na\r\n', '10;x="y"\r\n0123456789abcdef\r\n', '3\r\nxyz\r\n', '0\r\nX-Sum: 42\r\n\r\n'].join('');
  const head = `${OK}Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n`;
  const forms = [
    { name: 'with chunks', bytes: head + body, head: head.length, content: 'a0123456789abcdefxyz' },
    { name: 'with a length', bytes: `${OK}Content-Length: 12\r\n\r\nhello, world`, head: 39, content: 'hello, world' },
  ];

  test.each(forms.flatMap((form) => (['close', 'reset'] as const).map((ending) => ({ ...form, ending }))))(
    '$name, by a $ending: a 502 or 504 before its body, a visible cut within it',
    async ({ bytes, head: length, content, ending }) => {
      const answer = (socket: Socket, request: { target: string }) => {
        sendOn(socket, bytes.slice(0, Number(request.target.slice(1))), ending);
        return true;
      };
      await runAttack({ yaml: broken(), answer }, async ({ gate }) => {
        const cutAt = async (at: number, method: string): Promise<void> => {
          const client = await openRaw(gate.url);
          const rest = method === 'POST' ? 'Content-Length: 4\r\n\r\nbody' : '\r\n';
          client.write(`${method} /${at} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`);
          const answers = readResponses(await client.ended(15_000), [method]);
          if (at < length) return expectReported(method, answers, `${at}`);
          const isWhole = at === bytes.length;
          // A reset may overtake data sent before it: then the client gets no response instead of half of one.
          if (ending === 'reset' && answers[0]?.status !== 200) return expectReported(method, answers, `${at}`);
          expect([at, method, answers.length, answers[0]?.isWhole]).toEqual([at, method, 1, isWhole]);
          expect(answers[0]?.status).toBe(200);
          expect(isWhole ? answers[0]?.body === content : content.startsWith(answers[0]?.body ?? '-')).toBe(true);
        };
        const places = Array.from({ length: bytes.length + 1 }, (_, at) => at);
        for (let from = 0; from < places.length; from += 8) {
          const some = places.slice(from, from + 8);
          await Promise.all(some.flatMap((at) => [cutAt(at, 'GET'), cutAt(at, 'POST')]));
        }
      });
    },
  );
});

test('forwards a response that precedes its request, and does not reuse its connection', async () => {
  const early = `${OK}Content-Length: 5\r\n\r\nearly`;
  const answer = (socket: Socket, { target }: { target: string }) => {
    if (target === '/next') return false;
    sendOn(socket, early, 'hold');
    return true;
  };
  await runAttack({ yaml: broken(), answer }, async ({ gate }) => {
    const sending = new AbortController();
    onTestFinished(() => sending.abort());
    const client = await openRaw(gate.url);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n');
    client.write('x'.repeat(200_000));
    await client.until('early');
    expect((await send(gate.url, '/next')).body.toString()).toBe('GET /next ');
  });
});
