import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

test('requests that their client aborts do not make the proxy refuse fast requests of others', async () => {
  const upstream = await listen((request, response) => {
    if (request.url !== '/hang') setTimeout(() => response.end('served'), 60);
  });
  const gate = await startTidegate(
    `clients: {key: [header:X-Client]}\nupstreams: {api: {url: "${upstream.url}", connections: 16}}`,
  );
  const until = performance.now() + 3300;
  const hangs = Array.from({ length: 8 }, async () => {
    while (performance.now() < until) {
      const headers = ['X-Client', 'aborts'];
      await send(gate.url, '/hang', { headers, signal: AbortSignal.timeout(600) }).catch(() => undefined);
    }
  });
  await sleep(3250);
  const burst = Array.from({ length: 60 }, (_, i) => send(gate.url, '/', { headers: ['X-Client', `calm${i % 10}`] }));
  expect((await Promise.all(burst)).map(({ status }) => status)).toEqual(burst.map(() => 200));
  await Promise.all(hangs);
});
