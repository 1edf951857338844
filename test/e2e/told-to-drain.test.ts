/** A process that operators tell to drain. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../support/admin-api.ts';
import { startReloadable } from '../support/reloadable.ts';
import { send } from '../support/send.ts';
import { eventually, startUpstream } from '../support/tidegate.ts';

const GIVEN = `listen: 127.0.0.1:0\nadmin: {listen: "127.0.0.1:0", token: ${TOKEN}}\ndrain: {delay: 0, timeout: 10s}\n`;

// Seen: the second was taken for a second signal, which ends the process at once.
test('told twice, it answers what is under way, and ends', async () => {
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 1500 } });
  const gate = await startReloadable(`upstreams: {api: {url: "${upstream.url}"}}`, { given: GIVEN });
  const api = await openAdminApi(gate.adminUrl);
  const last = send(gate.url, '/');
  await eventually(
    () => upstream.stats().inFlight,
    (count) => count === 1,
  );
  const told = await Promise.all([api.post('/drain'), api.post('/drain')]);
  expect(told.map(({ status }) => status)).toEqual([200, 200]);
  expect((await last).status).toBe(200);
  expect((await gate.ended).code).toBe(0);
  expect(gate.log().filter(({ action }) => action === 'drain')).toHaveLength(1);
});
