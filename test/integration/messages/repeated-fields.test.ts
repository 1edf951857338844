/** Requests that repeat a field over HTTP/2: the same lines reach an upstream over HTTP/1.1, with the same decisions, as over HTTP/1.1. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { makeCertificates } from '../../support/certificates.ts';
import { FLAG, FRAME, frame, literals, openFrames } from '../../support/clients/http2-client.ts';
import { startRawUpstream } from '../../support/clients/raw-socket.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

type Lines = readonly (readonly [string, string])[];

const certificates = makeCertificates();
let ca: string;

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  ca = certificates.read('ca.crt');
});
afterAll(() => certificates.remove());

/** An upstream that breaks each first attempt, so that a write is sent again if and only if it has a key. */
async function start(idempotency: string) {
  const seen = new Set<string>();
  const upstream = await startRawUpstream((socket, head) => {
    const path = head.split(' ')[1] ?? '';
    if (seen.has(path)) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    seen.add(path);
    socket.destroy();
  });
  const { path } = certificates;
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams:
  api:
    url: "${upstream.url}"
    retry: {backOff: {strategy: fixed, baseInterval: 10ms}}
    idempotency: ${idempotency}`);
  /** The lines of these fields in each attempt with this path, and the end in the log. */
  const outcome = async (at: string, lines: Lines) => {
    const log = await eventually(
      () => gate.requests().filter((line) => line['path'] === at),
      ({ length }) => length === 1,
    );
    const names = lines.map(([name]) => name);
    const heads = upstream.connections.flatMap(({ received }) => received().split('\r\n\r\n'));
    const attempts = heads.filter((head) => head.startsWith(`POST ${at} `));
    const sent = attempts.map((head) => head.split('\r\n').filter((line) => names.includes(line.split(':')[0] ?? '')));
    const [{ status, reason } = {}] = log;
    return { sent, status, reason };
  };
  return { url: gate.url, outcome };
}

async function postHttp2(url: string, path: string, lines: Lines, body: string): Promise<void> {
  const { socket } = await openFrames(url, ca);
  const fields = [[':method', 'POST'], [':scheme', 'https'], [':path', path], [':authority', '127.0.0.1'], ...lines];
  const head = Buffer.concat(fields.map(([name = '', value = '']) => literals({ [name]: value })));
  socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head));
  socket.write(frame(FRAME.data, FLAG.endStream, 1, Buffer.from(body)));
}

async function postHttp1(url: string, path: string, lines: Lines, body: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connectTls({ host: hostname, port: Number(port), ca, ALPNProtocols: ['http/1.1'] });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n${fields}\r\n${body}`);
}

/** Sends the request over each protocol, and returns what became of it. */
async function compare(idempotency: string, lines: Lines, body = '') {
  const { url, outcome } = await start(idempotency);
  await postHttp2(url, '/2', lines, body);
  const http2 = await outcome('/2', lines);
  await postHttp1(url, '/1', lines, body);
  return { http2, http1: await outcome('/1', lines) };
}

const asSent = (lines: Lines): string[] => lines.map(([name, value]) => `${name}: ${value}`);

describe('a repeated Idempotency-Key is no key, and reaches the upstream line by line', () => {
  test.each([
    ['an empty one and one with a value', '', 'k'],
    ['one with a value and an empty one', 'k', ''],
    ['two different ones', 'k', 'l'],
    ['the same twice', 'k', 'k'],
  ])('%s', async (_, ...values) => {
    const lines = values.map((value) => ['idempotency-key', value] as const);
    const { http2, http1 } = await compare('{header: Idempotency-Key, generate: true}', lines);
    expect(http2).toEqual({ sent: [asSent(lines)], status: 504, reason: 'reset' });
    expect(http1).toEqual(http2);
  });
});

test('other repeated fields reach the upstream line by line, empty ones too', async () => {
  const names = ['x-a', 'if-match', 'origin', 'range', 'content-encoding', 'date', 'set-cookie', 'user-agent'];
  const lines = names.flatMap((name) => ['1', '', '2', '2'].map((value) => [name, value] as const));
  const { http2, http1 } = await compare('{}', lines);
  expect(http2).toEqual({ sent: [asSent(lines)], status: 504, reason: 'reset' });
  expect(http1).toEqual(http2);
});

test('a body has no key if any line of Content-Encoding names a coding', async () => {
  const lines = [
    ['content-type', 'application/json'],
    ['content-encoding', 'identity'],
    ['content-encoding', 'gzip'],
  ] as const;
  const body = '{"idempotency_key":"k"}';
  const { http2, http1 } = await compare('{jsonField: idempotency_key}', lines, body);
  expect(http2).toEqual({ sent: [asSent(lines)], status: 504, reason: 'reset' });
  expect(http1).toEqual(http2);
});
