import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { headerOf, keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const SLOW = '203.0.113.1';
const OTHERS = ['203.0.113.2', '203.0.113.3', '203.0.113.4'];

test('serves all requests of active clients beside one whose slow responses would take all connections', async () => {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_n, response, { headers }) => {
    if (headerOf(headers, 'x-forwarded-for')?.startsWith(SLOW) === true) held.push(response);
    else response.end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", connections: 12, timeout: 60s, perTryTimeout: 60s}}
clients: {key: [ip], trustedProxies: [127.0.0.1]}
`);
  const agent = keepAlive();
  const ask = async (address: string) =>
    (await send(gate.url, '/', { headers: ['X-Forwarded-For', address], agent })).status;
  expect(await Promise.all(OTHERS.map(ask))).toEqual([200, 200, 200]);

  const slow = Promise.all(Array.from({ length: 20 }, () => ask(SLOW)));
  await eventually(
    () => gate.view().limits[0]?.queued,
    (queued) => queued !== undefined && held.length + queued >= 20,
  );
  const statuses = await Promise.all(
    OTHERS.map(async (address) => {
      const its: number[] = [];
      for (let i = 0; i < 30; i += 1) {
        its.push(await ask(address));
        await pause(1000 / 15);
      }
      return its;
    }),
  );
  expect(new Set(statuses.flat())).toEqual(new Set([200]));
  expect(held).toHaveLength(11);

  await eventually(
    () => gate.view().limits[0]?.queued,
    (queued) => queued === 0,
  );
  for (const response of held) response.end();
  const answers = await slow;
  expect(answers.filter((status) => status === 200)).toHaveLength(11);
  expect(answers.filter((status) => status === 429)).toHaveLength(9);
});
