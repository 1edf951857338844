/** Attempts whose time was over before they had a connection: they leave nothing behind that does harm. */
import { randomBytes } from 'node:crypto';
import dns from 'node:dns';
import type { ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { sha256 } from '../support/http-upstream.ts';
import { startOrigin } from '../support/origin.ts';
import { pause } from '../support/pause.ts';
import { send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

test('those that waited for others to end cost no connection', async () => {
  const answers = new Set<ServerResponse>();
  const origin = await startOrigin(({ target }, response) => {
    if (target === '/slow') answers.add(response);
    else response.end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${origin.url}", connections: 2, retry: {attempts: 1}, queue: {maxWait: 100ms}}}
routes: [{path: /slow, upstream: api}, {path: /, upstream: api, perTryTimeout: 100ms}]
`);
  const slow = [send(gate.url, '/slow'), send(gate.url, '/slow')];
  await eventually(
    () => answers.size,
    (count) => count === 2,
  );
  const waiting = await Promise.all(Array.from({ length: 40 }, () => send(gate.url, '/quick')));
  expect(new Set(waiting.map(({ status }) => status))).toEqual(new Set([429]));
  for (const response of answers) response.end();
  await Promise.all(slow);
  expect((await send(gate.url, '/quick')).status).toBe(200);
  expect(origin.connections()).toBe(2);
  expect(origin.received).toHaveLength(3);
});

test.each([true, false])('an upload is sent whole by the next attempt, chunked: %s', async (chunked) => {
  const origin = await startOrigin();
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${origin.url.replace('127.0.0.1', 'localhost')}"
    perTryTimeout: 300ms
    retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 0ms}}
`);
  // Each connection waits for its lookup until it is let go.
  const lookups: (() => void)[] = [];
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: unknown, found: Found) => {
    lookups.push(() => found(null, [{ address: '127.0.0.1', family: 4 }]));
  }) as typeof dns.lookup);
  try {
    const body = randomBytes(1024 * 1024);
    const answer = send(gate.url, '/', { method: 'POST', chunked, body });
    // The first attempt gives up; the second is begun, and waits for the connection of the first.
    await pause(450);
    for (const letGo of lookups) letGo();
    expect((await answer).status).toBe(200);
    expect(origin.received.map((received) => sha256(received.body))).toEqual([sha256(body)]);
  } finally {
    lookup.mockRestore();
  }
});

type Found = (error: Error | null, addresses: { address: string; family: number }[]) => void;
