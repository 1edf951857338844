/**
 * Sends mutated HTTP/2 frames to a separate process. Invariants: the process survives, other clients are served meanwhile,
 * the upstream receives only valid requests, and no state remains. For a longer run: `npm run fuzz`.
 */
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Random } from '../../src/core/scalars.ts';
import { makeCertificates } from '../support/certificates.ts';
import { FUZZ_TIMEOUT, fuzzFor } from '../support/fuzz/fuzz.ts';
import {
  FLAG,
  FRAME,
  PREFACE,
  readHttp2Answer,
  frame,
  literals,
  openHttp2,
  encodeUint32s,
} from '../support/clients/http2-client.ts';
import { makeMutator } from '../support/fuzz/mutate.ts';
import { pause } from '../support/pause.ts';
import { startProcess } from '../support/proxy/process.ts';
import { startStrictUpstream } from '../support/upstreams/strict-upstream.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const SEED = 20_261_122;
const AT_ONCE = 16;
const BATCH = 160;
/** Milliseconds that only a hang takes. Below the timeout of the test, so that the error names what hangs. */
const HANGS_AFTER = 20_000;

const CONTINUATION = 9;
const PING = 6;
const PRIORITY = 2;

const certificates = makeCertificates();
beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1'));
afterAll(() => certificates.remove());

const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/a?b=c', ':authority': '127.0.0.1' });
const post = literals({
  ':method': 'POST',
  ':scheme': 'https',
  ':path': '/pay',
  ':authority': '127.0.0.1',
  'content-type': 'application/json',
  'idempotency-key': 'k1',
});
const whole = FLAG.endHeaders | FLAG.endStream;
const SETTINGS = frame(FRAME.settings, 0, 0);

/** What a client sends after its preface; bytes as latin1. */
const SOUND: readonly string[] = [
  [SETTINGS, frame(FRAME.headers, whole, 1, get)],
  [
    SETTINGS,
    frame(FRAME.headers, whole, 1, get),
    frame(FRAME.headers, whole, 3, get),
    frame(PING, 0, 0, encodeUint32s(1, 2)),
  ],
  [
    SETTINGS,
    frame(FRAME.headers, FLAG.endHeaders, 1, post),
    frame(FRAME.data, 0, 1, Buffer.from('{"amount":')),
    frame(FRAME.data, FLAG.endStream, 1, Buffer.from('100}')),
  ],
  [
    SETTINGS,
    frame(FRAME.headers, FLAG.endHeaders, 1, post),
    frame(FRAME.data, 0, 1, Buffer.from('body')),
    frame(FRAME.headers, whole, 1, literals({ 'x-sum': '42' })),
  ],
  [
    frame(FRAME.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 10, 0, 4, 0, 0, 0x10, 0])),
    frame(FRAME.windowUpdate, 0, 0, encodeUint32s(1_000_000)),
    frame(FRAME.headers, FLAG.endStream, 1, get.subarray(0, 20)),
    frame(CONTINUATION, FLAG.endHeaders, 1, get.subarray(20)),
    frame(FRAME.windowUpdate, 0, 1, encodeUint32s(5)),
  ],
  [
    SETTINGS,
    frame(FRAME.headers, FLAG.endHeaders, 1, post),
    frame(FRAME.reset, 0, 1, encodeUint32s(8)),
    frame(FRAME.headers, whole, 3, get),
    frame(PRIORITY, 0, 3, Buffer.from([0, 0, 0, 1, 16])),
    frame(FRAME.goAway, 0, 0, encodeUint32s(0, 0)),
  ],
].map((frames) => Buffer.concat(frames).toString('latin1'));

const WORDS = [
  ...['\0', '\0\0\0\0', '\xff\xff\xff', '\x7f\xff\xff\xff', '\x80\0\0\0', PREFACE, ':path', ':status', 'host', '\r\n'],
  ...Array.from({ length: 12 }, (_, type) => frame(type, 0, 1).toString('latin1')),
  ...[0, 1, 4, 5, 8, 0x20, 0xff].map((flags) => frame(FRAME.headers, flags, 5, get).toString('latin1')),
  frame(FRAME.data, 0, 1, Buffer.alloc(16_384)).toString('latin1'),
  frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0xff, 0xff, 0xff, 0xff])).toString('latin1'),
  frame(FRAME.headers, whole, 7, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f])).toString('latin1'),
];

test('survives any sequence of HTTP/2 frames on a connection', { timeout: FUZZ_TIMEOUT }, async () => {
  const upstream = await startStrictUpstream();
  const { path } = certificates;
  const running = startProcess(['--config', '/dev/stdin']);
  running.child.stdin.end(
    JSON.stringify({
      listen: { address: '127.0.0.1:0', tls: { cert: path('server.crt'), key: path('server.key') }, http2: true },
      admin: '127.0.0.1:0',
      limits: { headers: '2s', bodyIdle: '2s' },
      drain: { delay: 0, timeout: '1s' },
      // Node 24.21 keeps a connection after its GOAWAY if the client breaks the protocol: this limit ends its streams.
      upstreams: { api: { url: upstream.url, streamIdle: '2s', retry: { attempts: 1 } } },
    }),
  );
  const { url, admin } = await eventually(
    () => running.log().find(({ msg }) => msg === 'listening') ?? {},
    (line) => 'url' in line,
  );
  const ca = certificates.read('ca.crt');
  const { port } = new URL(String(url));
  const inFlight = async (): Promise<number> => {
    const exposition = await (await fetch(`${String(admin)}/metrics`)).text();
    return Number(/^tidegate_requests_in_flight\{route="\/"\} (\d+)/m.exec(exposition)?.[1] ?? 0);
  };
  const beside = await openHttp2(String(url), ca);
  let talks = 0;

  const talk = async (random: Random): Promise<void> => {
    const { mutate, pick, below } = makeMutator(random, SOUND, WORDS);
    const socket = connectTls({ host: '127.0.0.1', port: Number(port), ca, ALPNProtocols: ['h2'] });
    socket.on('error', () => undefined);
    socket.resume();
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(HANGS_AFTER) });
    const preface = below(10) === 0 ? mutate(PREFACE) : PREFACE;
    const bytes = Buffer.from(preface + mutate(pick(SOUND)), 'latin1');
    const cut = below(bytes.length);
    socket.write(bytes.subarray(0, cut));
    await new Promise(setImmediate);
    if (!socket.destroyed) socket.write(bytes.subarray(cut));
    await pause(below(30));
    socket.destroy();
    talks += 1;
  };
  const attack = async (random: Random): Promise<void> => {
    let left = BATCH;
    const talkOn = async (): Promise<void> => {
      for (; left > 0; left -= 1) await talk(random);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, talkOn));
    // Uses a connection opened before the attack.
    expect((await readHttp2Answer(beside.request({ ':path': '/sound' }))).body.toString()).toBe('GET /sound ');
    expect(upstream.faults).toEqual([]);
    expect(running.child.exitCode).toBeNull();
    upstream.forget();
  };
  await fuzzFor(5, { seed: SEED, turn: attack });

  expect(talks).toBeGreaterThanOrEqual(BATCH);
  await eventually(inFlight, (count) => count === 0, HANGS_AFTER);
  expect(running.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  running.child.kill('SIGTERM');
  const { code, stderr } = await running.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  onTestFinished(() => beside.destroy());
});
