/** Deliveries that are not sent again: their route is removed, or their process is closed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-deliveries-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('what waits for a route that is no longer configured expires, and is counted and reported', async () => {
  const folder = makeFolder();
  const shop = await startHttpUpstream((_n, response) => void response.writeHead(503).end());
  const configure = (routes: string, limits: string): string => `
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
limits: {${limits}}
upstreams: {shop: {url: ${shop.url}}}
routes: [${routes}{path: /, upstream: shop}]
`;
  const first = await startTidegate(
    configure('{path: /hooks, upstream: shop, deliver: {schedule: {delays: [1h]}}}, ', ''),
  );
  const accepted = await send(first.url, '/hooks', { method: 'POST', body: '{}' });
  await eventually(
    () => first.metric('tidegate_delivery_attempts_total{route="/hooks",result="status_503"}'),
    (attempts) => attempts === 1,
  );
  await first.close();

  const second = await startTidegate(configure('', 'deliveryAge: 30d'));
  const dead = 'tidegate_deliveries_total{route="/hooks",event="dead"}';
  expect(await second.metric(dead)).toBe(0);
  await second.rewrite(configure('', 'deliveryAge: 1ms'));
  await eventually(
    () => second.metric(dead),
    (count) => count === 1,
  );
  const state = await send(second.url, accepted.header('location') ?? '');
  expect(state.json()).toMatchObject({ state: 'dead', attempts: 1, lastAttempt: { reason: 'expired' } });
  expect(shop.hits).toHaveLength(1);
  expect(second.log().filter(({ msg }) => msg === 'delivery ended')).toMatchObject([
    {
      level: 'error',
      delivery: accepted.header('tidegate-delivery-id'),
      outcome: 'dead',
      attempts: 1,
      reason: 'expired',
    },
  ]);
});

test('a process that is closed does not wait for the next attempt', async () => {
  const [set, clear] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
  atEnd(() => {
    for (const spy of [set, clear]) spy.mockRestore();
  });
  const shop = await startHttpUpstream((_n, response) => void response.writeHead(503).end());
  const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(makeFolder(), 'state.db')}}
upstreams: {shop: {url: ${shop.url}}}
routes: [{path: /hooks, upstream: shop, deliver: {schedule: {delays: [1h]}}}]
`);
  await send(gate.url, '/hooks', { method: 'POST', body: '{}' });
  const nth = await eventually(
    () => set.mock.calls.findIndex(([, delay = 0]) => delay > 3_500_000),
    (index) => index >= 0,
  );
  await gate.close();
  expect(clear.mock.calls.some(([timer]) => timer === set.mock.results[nth]?.value)).toBe(true);
});
