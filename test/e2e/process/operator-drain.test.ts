/** Draining through the admin API. */
import { expect, test } from 'vitest';
import { openAdminApi, TOKEN } from '../../support/admin/admin-api.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const GIVEN = `listen: 127.0.0.1:0\nadmin: {listen: "127.0.0.1:0", token: ${TOKEN}}\ndrain: {delay: 0, timeout: 10s}\n`;

// Regression: the second call counted as a second signal, which ends the process at once.
test('answers requests in flight before it exits, when drain is called twice', async () => {
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 1500 } });
  const gate = await startReloadable(`upstreams: {api: {url: "${upstream.url}"}}`, { given: GIVEN });
  const api = await openAdminApi(gate.adminUrl);
  const last = send(gate.url, '/');
  await eventually(
    () => upstream.stats().inFlight,
    (count) => count === 1,
  );
  const responses = await Promise.all([api.post('/drain'), api.post('/drain')]);
  expect(responses.map(({ status }) => status)).toEqual([200, 200]);
  expect((await last).status).toBe(200);
  expect((await gate.ended).code).toBe(0);
  expect(gate.log().filter(({ action }) => action === 'drain')).toHaveLength(1);
});
