import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RecordedRequest } from '../../support/upstreams/recording-upstream.ts';
import type { S3Options } from '../../support/upstreams/s3-upstream.ts';
import { startS3Upstream } from '../../support/upstreams/s3-upstream.ts';
import { verifySignature } from '../../support/upstreams/verify-sigv4.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const MiB = 1024 * 1024;

function openClient(endpoint: string, config: S3ClientConfig = {}): S3Client {
  const client = new S3Client({ region: 'eu-central-1', endpoint, forcePathStyle: true, credentials, ...config });
  onTestFinished(() => client.destroy());
  return client;
}

async function start({ slowDowns = 0, preserveHost = true }: Partial<S3Options> & { preserveHost?: boolean } = {}) {
  const s3 = await startS3Upstream({ credentials, slowDowns });
  const tidegate = await startTidegate(`
upstreams:
  s3:
    url: ${s3.url}
    preserveHost: ${preserveHost}
    retry: {backOff: {strategy: fixed, baseInterval: 10ms}}
`);
  return { s3, tidegate };
}

/** Disables the SDK's own retries, so that every retry is the proxy's. */
const ONCE: S3ClientConfig = { maxAttempts: 1 };

async function rejectionOf(promise: Promise<unknown>): Promise<S3ServiceException> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof S3ServiceException) return error;
  throw new Error(`not an S3 error: ${String(error)}`);
}

describe('with preserveHost, a SigV4 signature remains valid through the proxy', () => {
  test('for the PUT, HEAD, GET and DELETE of an object', async () => {
    const { s3, tidegate } = await start();
    const client = openClient(tidegate.url, ONCE);
    const Key = 'invoices/2026/a b+c(1)~é.json';
    const object = { Bucket: 'ledger', Key };
    await client.send(new PutObjectCommand({ ...object, Body: '{"amount":100}', Metadata: { kind: 'two  spaces' } }));
    expect((await client.send(new HeadObjectCommand(object))).ContentLength).toBe(14);
    const { Body } = await client.send(new GetObjectCommand(object));
    expect(await Body?.transformToString()).toBe('{"amount":100}');
    await client.send(new DeleteObjectCommand(object));
    expect(s3.objects.size).toBe(0);
    expect(s3.seen.map(({ request, status }) => [request.method, status])).toEqual([
      ['PUT', 200],
      ['HEAD', 200],
      ['GET', 200],
      ['DELETE', 204],
    ]);
    expect(s3.seen[0]?.verdict).toBe('hash');
    expect(s3.seen[0]?.request.headers.host).toBe(new URL(tidegate.url).host);
  });

  test('for an aws-chunked stream with a trailing checksum', async () => {
    const { s3, tidegate } = await start();
    const bytes = randomBytes(8 * MiB);
    await openClient(tidegate.url, ONCE).send(
      new PutObjectCommand({
        Bucket: 'ledger',
        Key: 'export.bin',
        Body: Readable.from(cut(bytes, 60_000)),
        ContentLength: bytes.length,
      }),
    );
    expect(s3.seen.map(({ verdict }) => verdict)).toEqual(['trailer']);
    expect(s3.objects.get('/ledger/export.bin')?.equals(bytes)).toBe(true);
  });

  test('for 8 MiB in both directions, with Expect: 100-continue on the upload', async () => {
    const { s3, tidegate } = await start();
    const client = openClient(tidegate.url, ONCE);
    const object = { Bucket: 'ledger', Key: 'large.bin' };
    const bytes = randomBytes(8 * MiB);
    const expected: unknown[] = [];
    client.middlewareStack.add(
      (next) => (args) => {
        expected.push((args.request as { headers: Record<string, string> }).headers['Expect']);
        return next(args);
      },
      { step: 'finalizeRequest', priority: 'low' },
    );
    await client.send(new PutObjectCommand({ ...object, Body: bytes }));
    expect(expected).toEqual(['100-continue']);
    const { Body } = await client.send(new GetObjectCommand(object));
    expect(bytes.equals((await Body?.transformToByteArray()) ?? new Uint8Array())).toBe(true);
    expect(s3.seen.map(({ verdict }) => verdict)).toEqual(['hash', 'hash']);
  });
});

describe('a signed request answered with 503 SlowDown', () => {
  test('is retried by the proxy with the same signature and bytes, and the SDK sees one attempt', async () => {
    const { s3, tidegate } = await start({ slowDowns: 2 });
    const bytes = randomBytes(40_000);
    const { $metadata } = await openClient(tidegate.url).send(
      new PutObjectCommand({ Bucket: 'ledger', Key: 'small.bin', Body: bytes }),
    );
    expect($metadata.attempts).toBe(1);
    expect(s3.seen.map(({ status, verdict }) => [status, verdict])).toEqual([
      [503, 'hash'],
      [503, 'hash'],
      [200, 'hash'],
    ]);
    expect(new Set(s3.seen.map(({ request }) => request.headers.authorization)).size).toBe(1);
    expect(s3.seen.every(({ request }) => request.body.equals(bytes))).toBe(true);
    const lines = await eventually(
      () => tidegate.requests(),
      ({ length }) => length === 1,
    );
    expect(lines).toMatchObject([{ method: 'PUT', status: 200, attempts: 3, outcome: 'recovered' }]);
  });

  test('is retried by the proxy with its aws-chunked body unchanged', async () => {
    const { s3, tidegate } = await start({ slowDowns: 1 });
    const bytes = randomBytes(30_000);
    const { $metadata } = await openClient(tidegate.url).send(
      new PutObjectCommand({
        Bucket: 'ledger',
        Key: 'small.bin',
        Body: Readable.from(cut(bytes, 9000)),
        ContentLength: bytes.length,
      }),
    );
    expect($metadata.attempts).toBe(1);
    expect(s3.seen.map(({ status, verdict }) => [status, verdict])).toEqual([
      [503, 'trailer'],
      [200, 'trailer'],
    ]);
    expect(s3.seen[1]?.request.body.equals(s3.seen[0]?.request.body ?? Buffer.alloc(0))).toBe(true);
    expect(s3.objects.get('/ledger/small.bin')?.equals(bytes)).toBe(true);
  });

  test('is retried by the SDK with a new signature when its body is too large for the replay buffer', async () => {
    const { s3, tidegate } = await start({ slowDowns: 1 });
    const bytes = randomBytes(MiB);
    const { $metadata } = await openClient(tidegate.url).send(
      new PutObjectCommand({ Bucket: 'ledger', Key: 'large.bin', Body: bytes }),
    );
    expect($metadata.attempts).toBe(2);
    expect(s3.seen.map(({ status }) => status)).toEqual([503, 200]);
    const lines = await eventually(
      () => tidegate.requests(),
      ({ length }) => length === 2,
    );
    expect(lines).toMatchObject([
      { status: 503, attempts: 1, reason: 'body_too_large' },
      { status: 200, attempts: 1 },
    ]);
    expect(s3.objects.get('/ledger/large.bin')?.equals(bytes)).toBe(true);
  });
});

describe('the signature verifier', () => {
  test('rejects a request proxied without preserveHost, because the signature covers Host', async () => {
    const { s3, tidegate } = await start({ preserveHost: false });
    const put = new PutObjectCommand({ Bucket: 'ledger', Key: 'x', Body: 'x' });
    const error = await rejectionOf(openClient(tidegate.url, ONCE).send(put));
    expect([error.name, error.$metadata.httpStatusCode]).toEqual(['SignatureDoesNotMatch', 403]);
    expect(s3.seen.map(({ verdict }) => verdict)).toEqual(['SignatureDoesNotMatch']);
    expect(s3.objects.size).toBe(0);
  });

  test('rejects a request signed with another secret, with and without the proxy', async () => {
    const { s3, tidegate } = await start();
    const put = new PutObjectCommand({ Bucket: 'ledger', Key: 'x', Body: 'x' });
    const stolen = { ...ONCE, credentials: { ...credentials, secretAccessKey: 'guessed' } };
    for (const endpoint of [s3.url, tidegate.url]) {
      expect((await rejectionOf(openClient(endpoint, stolen).send(put))).name).toBe('SignatureDoesNotMatch');
      await openClient(endpoint, ONCE).send(put);
    }
    expect(s3.seen.map(({ verdict }) => verdict)).toEqual([
      'SignatureDoesNotMatch',
      'hash',
      'SignatureDoesNotMatch',
      'hash',
    ]);
  });
});

test('the signature verifier detects a change in the method, target, headers and body', async () => {
  const { s3 } = await start();
  const put = (Body: string | Readable) =>
    openClient(s3.url, ONCE).send(new PutObjectCommand({ Bucket: 'ledger', Key: 'x', Body, ContentLength: 6 }));
  await put('secret');
  await put(Readable.from([Buffer.from('secret')]));
  const verdict = (request: RecordedRequest) => {
    const verified = verifySignature(request, credentials);
    return verified.kind === 'refused' ? verified.code : verified.payload;
  };
  for (const { request } of s3.seen) {
    const { target, rawHeaders, body } = request;
    expect(verdict({ ...request, method: 'POST' })).toBe('SignatureDoesNotMatch');
    expect(verdict({ ...request, target: target.replace('/x', '/%78') })).toBe('SignatureDoesNotMatch');
    expect(verdict({ ...request, target: `${target}&acl` })).toBe('SignatureDoesNotMatch');
    const retyped = rawHeaders.map((value) => (value === 'application/octet-stream' ? 'text/plain' : value));
    expect(verdict({ ...request, rawHeaders: retyped })).toBe('SignatureDoesNotMatch');
    const flipped = Buffer.from(body);
    flipped[flipped.indexOf('secret')] = 0x53;
    expect(['XAmzContentSHA256Mismatch', 'BadDigest']).toContain(verdict({ ...request, body: flipped }));
  }
  expect(s3.seen.map(({ request }) => verdict(request))).toEqual(['hash', 'trailer']);
});

function* cut(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
