/** A page of another origin that sends requests through the proxy. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { startHttpUpstream } from '../support/upstreams/http-upstream.ts';
import { startTidegate } from '../support/proxy/tidegate.ts';

const open = useBrowser();

/** Serves an empty page from its own origin. */
async function startPage(): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><link rel="icon" href="data:,"><title>app</title>');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Seen {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly rateLimit: string | null;
  readonly id: string | null;
  readonly reason: unknown;
}

async function start(cors: string) {
  const upstream = await startHttpUpstream((_n, response) => response.end('{}'));
  const origin = await startPage();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s}, queue: {maxWait: 0}}}
routes: [{upstream: api, ${cors.replace('ORIGIN', origin)}}]
`);
  const { page } = await open(origin);
  /** Sends a request with a header that requires a preflight. */
  const ask = (credentials: RequestCredentials = 'same-origin'): Promise<Seen | string> =>
    page.evaluate(
      async ([url, credentials]) => {
        try {
          const answer = await fetch(url, { method: 'PUT', headers: { 'X-Api-Key': 'a' }, body: '{}', credentials });
          const body = (await answer.json()) as { reason?: unknown };
          const [retryAfter, rateLimit, id] = ['retry-after', 'ratelimit', 'tidegate-request-id'].map((name) =>
            answer.headers.get(name),
          );
          return {
            status: answer.status,
            retryAfter: retryAfter ?? null,
            rateLimit: rateLimit ?? null,
            id: id ?? null,
            reason: body.reason,
          };
        } catch (error) {
          return String(error);
        }
      },
      [gate.url, credentials] as const,
    );
  return { upstream, gate, ask };
}

test('the page can read the reason and Retry-After of a 429', async () => {
  const { upstream, ask } = await start('cors: {origins: ["ORIGIN"]}');
  expect(await ask()).toMatchObject({ status: 200 });
  const refused = await ask();
  expect(refused).toMatchObject({ status: 429, reason: 'over_share' });
  const { retryAfter, rateLimit, id } = refused as Seen;
  expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  expect(rateLimit).toBe(`"tidegate";r=0;t=${retryAfter}`);
  expect(id).toMatch(/./);
  expect(upstream.hits.map(({ method }) => method)).toEqual(['PUT']);
});

test('the page can read a 429 to a request with credentials', async () => {
  const { ask } = await start('cors: {origins: ["ORIGIN"], credentials: true}');
  expect(await ask('include')).toMatchObject({ status: 200 });
  expect(await ask('include')).toMatchObject({ status: 429, reason: 'over_share' });
});

test('the page can read a 429 when every origin is allowed', async () => {
  const { ask } = await start('cors: {origins: ["*"]}');
  expect(await ask()).toMatchObject({ status: 200 });
  expect(await ask()).toMatchObject({ status: 429, reason: 'over_share' });
});

test('the browser blocks the request when the origin is not allowed', async () => {
  const { upstream, ask } = await start('cors: {origins: ["https://other.example"]}');
  expect(await ask()).toMatch(/TypeError/);
  expect(upstream.hits).toHaveLength(0);
});
