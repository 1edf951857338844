import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const head = (length: number, ...more: string[]) =>
  ['POST /up HTTP/1.1', 'Host: x', 'Expect: 100-continue', `Content-Length: ${length}`, ...more, '', ''].join('\r\n');

test('sends 100 Continue to an admitted request, and forwards its body', async () => {
  const upstream = await startHttpUpstream((_n, response, hit) => response.end(`got ${hit.body.length}`));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (const length of [5, 100_000]) {
    const client = await openRaw(gate.url);
    client.write(head(length));
    expect(await client.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    client.write(Buffer.alloc(length, 'x'));
    expect(await client.until('got ')).toContain('HTTP/1.1 200 OK');
    expect(upstream.hits.at(-1)?.body).toHaveLength(length);
    expect(headerOf(upstream.hits.at(-1)!.headers, 'expect')).toBeUndefined();
  }
});

test('sends no 100 Continue to a rejected request, which saves the upload', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(429, ['Retry-After', '30']).end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/');
  const client = await openRaw(gate.url);
  client.write(head(5));
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 429 /);
  expect(answer).not.toContain('100 Continue');
  expect(answer).toMatch(/\r\nConnection: close\r\n/i);
  expect(answer).toMatch(/\r\nRetry-After: (?:29|30)\r\n/);
  expect(upstream.hits).toHaveLength(1);
});

test('sends 100 Continue to a queued request when it is admitted', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 2/s}}}`);
  await send(gate.url, '/');
  const client = await openRaw(gate.url);
  client.write(head(2));
  await eventually(
    () => gate.view().limits[0]?.queued,
    (queued) => queued === 1,
  );
  expect(client.received()).toBe('');
  await client.until('100 Continue');
  client.write('ok');
  await client.until('HTTP/1.1 200 OK');
});

test('keeps the expected body for a retry, and starts the deadline after it', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 700ms, retry: {backOff: {strategy: fixed, baseInterval: 1ms}}}}
`);
  const client = await openRaw(gate.url);
  client.write(head(4, 'Idempotency-Key: k'));
  await client.until('100 Continue');
  await pause(800); // longer than the deadline, which does not run while the client uploads
  client.write('body');
  await client.until('HTTP/1.1 200 OK');
  expect(upstream.hits.map(({ body }) => body.toString())).toEqual(['body', 'body']);
});

test('does not send 100 Continue within the response to an earlier request', async () => {
  let finish = (): void => undefined;
  const upstream = await startHttpUpstream((_n, response, { target, body }) => {
    if (target === '/up') response.end(`got ${body.length}`);
    else finish = () => response.end('the first');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  for (const waits of [true, false]) {
    const client = await openRaw(gate.url);
    const hits = upstream.hits.length;
    client.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n${head(4)}${waits ? '' : 'body'}`);
    await eventually(
      () => upstream.hits.length,
      (count) => count === hits + 1,
    );
    expect(client.received()).toBe('');
    finish();
    await client.until('100 Continue');
    if (waits) client.write('body');
    const answers = (await client.until('got 4')).match(/HTTP\/1\.1 \d+/g);
    expect(answers).toEqual(['HTTP/1.1 200', 'HTTP/1.1 100', 'HTTP/1.1 200']);
  }
});

test('serves a client that does not wait for 100 Continue', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write(`${head(4)}body`);
  await client.until('HTTP/1.1 200 OK');
  expect(upstream.hits[0]?.body.toString()).toBe('body');
});

test('answers any other expectation with 417', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const answer = await send(gate.url, '/', { headers: ['Expect', 'a-miracle'] });
  expect(answer.status).toBe(417);
  expect(answer.json()).toMatchObject({ status: 417, reason: 'expect' });
  expect(upstream.hits).toHaveLength(0);
});
