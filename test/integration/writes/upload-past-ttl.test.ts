/** The repeat of a write whose upload is not over when the upstream forgets the key: the rest must not complete a new write. */
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const MIB = 1024 * 1024;
const INTERNAL_ERROR = 2;

interface Unread {
  readonly url: string;
  /** Reads the repeat. @returns bytes of it, and whether its end has arrived, once nothing more arrives */
  readonly read: () => Promise<{ readonly bytes: number; readonly isComplete: boolean }>;
}

/** Resets the first request, and reads the second one only when asked. */
async function startHttp1(): Promise<Unread> {
  let requests = 0;
  let read: Unread['read'] | undefined;
  const { url } = await listen((request) => {
    request.on('error', () => undefined);
    requests += 1;
    if (requests === 1) return void request.resume().on('end', () => request.socket.resetAndDestroy());
    let bytes = 0;
    read = () =>
      new Promise((resolve) => {
        request.on('data', (chunk: Buffer) => (bytes += chunk.length));
        request.on('close', () => resolve({ bytes, isComplete: request.complete }));
      });
  });
  return { url, read: async () => (read === undefined ? { bytes: 0, isComplete: false } : read()) };
}

async function startOverHttp2(): Promise<Unread> {
  let read: Unread['read'] | undefined;
  const { url } = await startHttp2(identity, (stream, nth) => {
    if (nth === 1) return void stream.resume().on('end', () => stream.close(INTERNAL_ERROR));
    let bytes = 0;
    read = () =>
      new Promise((resolve) => {
        stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
        stream.on('end', () => resolve({ bytes, isComplete: !stream.aborted && stream.rstCode === 0 }));
        stream.on('close', () => resolve({ bytes, isComplete: false }));
      });
  });
  return { url, read: async () => (read === undefined ? { bytes: 0, isComplete: false } : read()) };
}

test.each([
  ['streamed over HTTP/2', startOverHttp2, 100_000, '64KiB'],
  ['buffered over HTTP/2', startOverHttp2, 100_000, '1MiB'],
  ['buffered over HTTP/1.1', startHttp1, 24 * MIB, '32MiB'],
])(
  'a body that has arrived but is not written is not sent after the ttl: %s',
  async (_, start, length, replayLimit) => {
    const upstream = await start();
    const more = upstream.url.startsWith('https') ? `, http2: true, tls: {ca: ${certificates.path('ca.crt')}}` : '';
    const gate = await startTidegate(`
limits: {replayMemory: 128MiB}
upstreams: {api: {url: "${upstream.url}"${more}, timeout: 5m, perTryTimeout: 5m, retry: {attempts: 1, replayLimit: ${replayLimit}}, idempotency: {ttl: 2s}}}`);
    const pay = async () => {
      const sent = { method: 'POST', headers: ['Idempotency-Key', 'k'], body: Buffer.alloc(length, 'x') };
      const answer = await send(gate.url, '/', sent);
      return [answer.status, answer.header('tidegate-outcome')];
    };
    expect(await pay()).toEqual([504, 'unknown']);
    expect(await pay()).toEqual([504, 'unknown']);
    await eventually(
      () => gate.requests().length,
      (lines) => lines === 2,
    );
    const { bytes, isComplete } = await upstream.read();
    expect(bytes).toBeLessThan(length);
    expect(isComplete).toBe(false);
  },
);
