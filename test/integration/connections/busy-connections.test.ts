import { expect, test } from 'vitest';
import { heldBytes } from '../../support/heap.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

test('leaves no waiters behind, and disturbs no others, when requests give up waiting for a connection', async () => {
  let free: (() => void) | undefined;
  const served: string[] = [];
  const { url, connections } = await listen((request, response) => {
    served.push(request.url ?? '');
    if (request.url !== '/stream') return void response.end();
    response.write('begun');
    free = () => response.end();
  });
  const gate = await startTidegate(`
log: {level: silent}
mode: observe
upstreams: {api: {url: "${url}", connections: 1, timeout: 500ms, perTryTimeout: 500ms, streamIdle: 1m}}
`);
  const stream = send(gate.url, '/stream');
  await eventually(
    () => served.length,
    (count) => count === 1,
  );
  const agent = keepAlive();
  const give = async (count: number): Promise<number[]> => {
    const body = Buffer.alloc(50_000);
    const all = Array.from({ length: count }, () => send(gate.url, '/late', { method: 'POST', body, agent }));
    return (await Promise.all(all)).map(({ status }) => status);
  };
  await give(20);
  const before = heldBytes();
  for (let i = 0; i < 5; i += 1) expect(new Set(await give(80))).toEqual(new Set([504]));
  // 400 requests of 50 kB each: nearly all of that is released, though the connection has been busy since.
  expect(heldBytes() - before).toBeLessThan(5e6);
  expect(await gate.metric('tidegate_bound_reached_total{bound="upstream_connections"}')).toBe(420);
  expect(await gate.metric('tidegate_bound_used_ratio{bound="upstream_connections"}')).toBe(1);

  free?.();
  expect((await stream).status).toBe(200);
  expect((await send(gate.url, '/next')).status).toBe(200);
  expect(served).toEqual(['/stream', '/next']);
  expect(connections()).toBe(1);
  expect(await gate.metric('tidegate_bound_used_ratio{bound="upstream_connections"}')).toBe(0);
});
