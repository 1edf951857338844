import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { send } from '../support/send.ts';
import { startTidegate } from '../support/tidegate.ts';

const ends = (outcome: string) => `tidegate_retry_outcomes_total{upstream="api",outcome="${outcome}"}`;

test.each([429, 503])('a Retry-After longer than we may wait is passed on at once: %i', async (status) => {
  const upstream = await startHttpUpstream((_n, response) => {
    response.writeHead(status, ['Retry-After', '30', 'Content-Type', 'text/plain', 'X-Theirs', 'yes']).end('busy');
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", timeout: 60s, retry: {maxRetryAfter: 1s}}}`,
  );
  const answer = await send(gate.url, '/');
  expect(answer.took).toBeLessThan(800);
  expect(answer.status).toBe(status);
  expect(answer.header('retry-after')).toBe('30');
  expect(answer.header('x-theirs')).toBe('yes');
  expect(answer.header('proxy-status')).toBeUndefined();
  expect(answer.body.toString()).toBe('busy');
  expect(upstream.hits).toHaveLength(1);
  expect(await gate.metric(ends('retry_after_too_long'))).toBe(1);
});

test('a Retry-After beyond the deadline of the request is passed on at once', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(429, ['Retry-After', '5']).end('busy'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", timeout: 2s}}`);
  const answer = await send(gate.url, '/');
  expect(answer.took).toBeLessThan(800);
  expect(answer.status).toBe(429);
  expect(answer.header('retry-after')).toBe('5');
  expect(await gate.metric(ends('deadline'))).toBe(1);
});

test('who comes back before that is told the rest of the wait by us, and the upstream is left alone', async () => {
  const upstream = await startHttpUpstream((_n, response) =>
    response.writeHead(429, ['Retry-After', '30']).end('busy'),
  );
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {maxRetryAfter: 1s}}}`);
  await send(gate.url, '/');
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(429);
  expect(Number(answer.header('retry-after'))).toBeGreaterThanOrEqual(28);
  expect(Number(answer.header('retry-after'))).toBeLessThanOrEqual(30);
  expect(answer.header('proxy-status')).toContain('tidegate; error=');
  expect(upstream.hits).toHaveLength(1);
});
