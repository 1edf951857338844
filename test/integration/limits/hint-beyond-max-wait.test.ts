import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const ends = (outcome: string) => `tidegate_retry_outcomes_total{upstream="api",outcome="${outcome}"}`;

test.each([429, 503])('forwards a rejection whose Retry-After exceeds the maximum wait at once: %i', async (status) => {
  const upstream = await startHttpUpstream((_n, response) => {
    response.writeHead(status, ['Retry-After', '30', 'Content-Type', 'text/plain', 'X-Theirs', 'yes']).end('busy');
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", timeout: 60s, retry: {maxRetryAfter: 1s}}}`,
  );
  const answer = await send(gate.url, '/');
  expect(answer.took).toBeLessThan(15_000); // of the upstream's 30 s
  expect(answer.status).toBe(status);
  expect(answer.header('retry-after')).toBe('30');
  expect(answer.header('x-theirs')).toBe('yes');
  expect(answer.header('proxy-status')).toBeUndefined();
  expect(answer.body.toString()).toBe('busy');
  expect(upstream.hits).toHaveLength(1);
  expect(await gate.metric(ends('retry_after_too_long'))).toBe(1);
});

test('forwards a rejection whose Retry-After exceeds the request’s deadline at once', async () => {
  const upstream = await startHttpUpstream((_n, response) =>
    response.writeHead(429, ['Retry-After', '50']).end('busy'),
  );
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", timeout: 30s, retry: {maxRetryAfter: 60s}}}`,
  );
  const answer = await send(gate.url, '/');
  expect(answer.took).toBeLessThan(15_000); // neither until the deadline nor for the upstream's 50 s
  expect(answer.status).toBe(429);
  expect(answer.header('retry-after')).toBe('50');
  expect(await gate.metric(ends('deadline'))).toBe(1);
});

test('rejects an early return itself with the rest of the wait, and sends nothing upstream', async () => {
  const upstream = await startHttpUpstream((_n, response) =>
    response.writeHead(429, ['Retry-After', '90']).end('busy'),
  );
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {maxRetryAfter: 1s}}}`);
  await send(gate.url, '/');
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(429);
  expect(Number(answer.header('retry-after'))).toBeGreaterThanOrEqual(60);
  expect(Number(answer.header('retry-after'))).toBeLessThanOrEqual(90);
  expect(answer.header('proxy-status')).toContain('tidegate; error=');
  expect(upstream.hits).toHaveLength(1);
});
