/** Slow uploads of clients and the proxy's own lack of connections do not count against the upstream's health. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

test('does not block the upstream for others when clients stall their uploads', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `limits: {bodyIdle: 1200ms}\nupstreams: {api: {url: "${upstream.url}", perTryTimeout: 400ms}}`,
  );
  const stalled = await Promise.all(Array.from({ length: 12 }, () => openRaw(gate.url)));
  for (const client of stalled) {
    client.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n');
    client.write(Buffer.alloc(1000));
  }
  await pause(600);
  expect((await send(gate.url, '/echo', {})).status).toBe(200);
  for (const client of stalled) {
    const answer = await client.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 504 /);
    expect(answer).toContain('"reason":"body_idle"');
  }
  expect(gate.view().limits[0]?.state).toBe('open');
  expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="errors"}')).toBe(0);
});

test('does not probe with a request whose body has not arrived', async () => {
  let broken = true;
  const upstream = await startHttpUpstream((_n, response) => {
    if (broken) response.writeHead(503).end();
    else response.end('well');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
  for (let i = 0; i < 8; i += 1) await send(gate.url, '/', {});
  await eventually(
    () => gate.view().limits[0]?.state,
    (state) => state === 'blocked',
  );
  broken = false;
  await pause(200); // a probe is due
  const slow = await openRaw(gate.url);
  slow.write('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');
  await slow.until('503');
  const answer = await send(gate.url, '/', {});
  expect(answer.status).toBe(200);
  expect(gate.view().limits[0]?.state).not.toBe('blocked');
});

test('does not count a wait for a connection of its own pool as an upstream failure', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    void pause(400).then(() => response.end('slow, and well'));
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", connections: 2, queue: {maxWait: 600ms}, retry: {attempts: 1}}}`,
  );
  const answers = await Promise.all(Array.from({ length: 24 }, () => send(gate.url, '/', {})));
  const statuses = new Set(answers.map(({ status }) => status));
  expect(statuses).toEqual(new Set([200, 429]));
  expect(gate.view().limits[0]?.state).toBe('open');
});
