/**
 * Sends mutated requests over real sockets to a separate process. Invariants: the process survives, each connection gets
 * valid responses or a clean end, the upstream receives only valid requests, a valid request is served at any time, and no
 * state remains. For a longer run: `npm run fuzz`.
 */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Random } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { FUZZ_TIMEOUT, fuzzFor } from '../support/fuzz/fuzz.ts';
import type { Mutator } from '../support/fuzz/mutate.ts';
import { makeMutator } from '../support/fuzz/mutate.ts';
import type { RunningProcess } from '../support/proxy/process.ts';
import { startProcess } from '../support/proxy/process.ts';
import { send } from '../support/clients/send.ts';
import { readResponses } from '../support/clients/strict-http.ts';
import { startStrictUpstream } from '../support/upstreams/strict-upstream.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const SEED = 20_261_121;
const AT_ONCE = 80;
const BATCH = 400;

interface Sound {
  readonly bytes: string;
  /** The expected response; undefined for HEAD, whose responses cannot be delimited in the text. */
  readonly expected: { readonly status: number; readonly body?: string } | undefined;
  /** Requests after this one get no response. */
  readonly isLast?: boolean;
}

const hello = 'Content-Length: 5\r\n\r\nhello';
const chunks = 'Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 1\r\n\r\n';
const echoed = (body: string) => ({ status: 200, body });
const long = (letter: string) => letter.repeat(70_000);

const SOUND: readonly Sound[] = [
  { bytes: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', expected: echoed('GET / ') },
  {
    bytes: 'GET /a/b?c=d&e=%2F HTTP/1.1\r\nHost: x:80\r\nConnection: keep-alive\r\nCookie: a=1; b="2"\r\n\r\n',
    expected: echoed('GET /a/b?c=d&e=%2F '),
  },
  {
    bytes: 'HEAD / HTTP/1.1\r\nHost: [::1]:8080\r\nUser-Agent: curl/8\r\nX-Request-Id: 1\r\n\r\n',
    expected: undefined,
  },
  { bytes: 'GET / HTTP/1.0\r\n\r\n', expected: echoed('GET / '), isLast: true },
  {
    bytes: 'GET http://x/y HTTP/1.1\r\nHost: x\r\nVia: 1.1 a, 1.0 b\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n',
    expected: echoed('GET /y '),
  },
  {
    bytes: `POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\nContent-Type: application/json\r\n${hello}`,
    expected: echoed('POST /pay hello'),
  },
  { bytes: `POST /pay HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n${hello}`, expected: echoed('POST /pay hello') },
  {
    bytes: `PUT /chunked HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTrailer: X-Sum\r\nConnection: TE\r\n${chunks}`,
    expected: echoed('PUT /chunked helloyou'),
  },
  {
    bytes: `PATCH / HTTP/1.1\r\nHost: x\r\nX-Api-Key: k\r\nContent-Length: 70000\r\n\r\n${long('p')}`,
    expected: echoed(`PATCH / ${long('p')}`),
  },
  {
    bytes: `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n${long('q')}\r\n0\r\n\r\n`,
    expected: echoed(`POST / ${long('q')}`),
  },
  {
    bytes: 'DELETE /x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n',
    expected: echoed('DELETE /x '),
    isLast: true,
  },
  { bytes: 'OPTIONS * HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n', expected: { status: 200 } },
  { bytes: 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n', expected: { status: 405 }, isLast: true },
];
const REQUESTS = SOUND.map(({ bytes }) => bytes);
const WORDS = [
  ...[
    '\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    '\0',
    ' ',
    '\t',
    ':',
    ': ',
    '/',
    '//',
    '/../',
    '%2e%2e',
    '\\',
    '?',
    '#',
    ',',
    ';',
    '"',
  ],
  ...[
    'GET ',
    'POST ',
    'CONNECT ',
    'HEAD ',
    ' HTTP/1.1',
    ' HTTP/1.0',
    ' HTTP/2.0',
    'Host: y\r\n',
    'Content-Length: 3\r\n',
  ],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: gzip, chunked\r\n',
    'Connection: close\r\n',
    'Expect: x\r\n',
  ],
  ...[
    'Connection: Host, Content-Length\r\n',
    'Upgrade: h2c\r\n',
    '0\r\n\r\n',
    'ffffffff\r\n',
    '5;',
    'X: y\r\n',
    'X: y\r\n z\r\n',
  ],
  ...['\xff\xfe', '\x7f', 'x'.repeat(1000), 'x'.repeat(40_000), 'X: y\r\n'.repeat(300)],
];

const END = 'GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

/** What a client does after its last byte. */
type Manner = 'wait' | 'half' | 'destroy' | 'reset';
const MANNERS: readonly Manner[] = ['wait', 'wait', 'wait', 'half', 'destroy', 'reset'];

async function startFuzzed(upstream: string): Promise<{ url: string; admin: string; running: RunningProcess }> {
  const preload = fileURLToPath(new URL('../support/heap-on-signal.ts', import.meta.url));
  const config = JSON.stringify({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    limits: { headers: '2s', bodyIdle: '2s' },
    drain: { delay: 0, timeout: '1s' },
    upstreams: { api: { url: upstream, retry: { attempts: 1 } } },
  });
  const running = startProcess(['--config', '/dev/stdin'], { env: { NODE_OPTIONS: `--import=${preload}` } });
  running.child.stdin.end(config);
  const { url, admin } = await eventually(
    () => running.log().find(({ msg }) => msg === 'listening') ?? {},
    (line) => 'url' in line,
  );
  return { url: String(url), admin: String(admin), running };
}

/** Sends the pieces without delay, and collects the response until the connection closes. */
function talk(url: string, pieces: readonly string[], manner: Manner): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let text = '';
    const lost = setTimeout(() => socket.destroy(new Error('not closed')), 15_000);
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(lost);
      resolve(text);
    });
    socket.on('connect', () => {
      void (async () => {
        for (const piece of pieces) {
          socket.write(Buffer.from(piece, 'latin1'));
          await new Promise(setImmediate);
        }
        if (manner === 'half') socket.end();
        else if (manner === 'destroy') socket.destroy();
        else if (manner === 'reset') socket.resetAndDestroy();
      })();
    });
  });
}

function split(text: string, { below }: Mutator): string[] {
  const pieces: string[] = [];
  const size = 1 + below(below(2) === 0 ? 40 : 100_000);
  for (let at = 0; at < text.length && pieces.length < 30; at += size) pieces.push(text.slice(at, at + size));
  return [...pieces, text.slice(pieces.length * size)];
}

/** The process's own metrics and log. */
function observe(admin: string, { child, log }: RunningProcess) {
  const metric = async (name: string): Promise<number> => {
    const exposition = await (await fetch(`${admin}/metrics`)).text();
    const line = exposition.split('\n').find((each) => each.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(name.length));
  };
  const heldRequests = () => log().flatMap(({ held }) => (typeof held === 'number' ? [held] : []));
  const held = async (): Promise<number> => {
    const before = heldRequests().length;
    child.kill('SIGWINCH');
    return (await eventually(heldRequests, ({ length }) => length > before)).at(-1) ?? 0;
  };
  return { metric, held };
}

test('survives any bytes on a connection', { timeout: FUZZ_TIMEOUT }, async () => {
  const upstream = await startStrictUpstream();
  const { url, admin, running } = await startFuzzed(upstream.url);
  const { metric, held } = observe(admin, running);
  const sockets = async () => (await metric('process_open_fds')) - upstream.connections();
  let talks = 0;

  const talkOnce = async (random: Random): Promise<void> => {
    const mutator = makeMutator(random, REQUESTS, WORDS);
    const { mutate, pick, below } = mutator;
    // Begins with valid requests, whose responses are known whatever follows them.
    const first = Array.from({ length: below(3) }, () => pick(SOUND));
    let text = first.map(({ bytes }) => bytes).join('');
    for (let left = 1 + below(2); left > 0; left -= 1) text += mutate(pick(REQUESTS));
    const manner = pick(MANNERS);
    // A waiting client asks for a close: the connection ends whether or not the proxy understands that.
    if (manner === 'wait') text += END;
    const answer = await talk(url, split(text, mutator), manner);
    talks += 1;
    const fault = faultOf(answer, { text, manner, first });
    if (fault !== undefined) throw new Error(`${fault}: ${fold(JSON.stringify({ text, manner, answer }))}`);
  };
  const attack = async (random: Random): Promise<void> => {
    let left = BATCH;
    const talkOn = async (): Promise<void> => {
      for (; left > 0; left -= 1) await talkOnce(random);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, talkOn));
    const probe = await send(url, '/probe', { method: 'POST', body: 'sound' });
    expect([probe.status, probe.body.toString()]).toEqual([200, 'POST /probe sound']);
    expect(upstream.faults).toEqual([]);
    expect(running.child.exitCode).toBeNull();
    upstream.forget();
  };

  await attack(seededRandom(SEED)); // warm-up
  const before = { held: await held(), sockets: await sockets() };
  await fuzzFor(5, { seed: SEED, turn: attack });

  expect(talks).toBeGreaterThanOrEqual(2 * BATCH);
  await eventually(
    () => metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === 0,
  );
  expect(await metric('tidegate_replay_buffer_bytes')).toBe(0);
  await eventually(sockets, (count) => count <= before.sockets + 2);
  expect((await held()) - before.held).toBeLessThan(10_000_000);
  expect(running.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  running.child.kill('SIGTERM');
  const { code, stderr } = await running.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

/** Abbreviates long runs of one character to `x…`. */
function fold(text: string): string {
  return text.replaceAll(/(.+?)\1{30,}/g, (run, piece: string) => `${piece}…(${run.length})`);
}

interface Talk {
  readonly text: string;
  readonly manner: Manner;
  readonly first: readonly Sound[];
}

/** Returns undefined if the response is valid, and complete if the client waited for it. */
function faultOf(answer: string, { text, manner, first }: Talk): string | undefined {
  // Neither the response nor the text shows whether a HEAD was answered, so bodies cannot be delimited.
  if (text.includes('HEAD')) return undefined;
  try {
    const answers = readResponses(answer, []);
    if (manner !== 'wait') return undefined; // a client that leaves early may get a part
    if (!answers.every(({ isWhole }) => isWhole)) return 'cut';
    for (const [i, { expected, isLast }] of first.entries()) {
      if (answers[i]?.status !== expected?.status) return `answer ${i} is another`;
      if (expected?.body !== undefined && answers[i]?.body !== expected.body) return `answer ${i} has another body`;
      if (isLast === true) break;
    }
    return undefined;
  } catch (error) {
    return String(error);
  }
}
