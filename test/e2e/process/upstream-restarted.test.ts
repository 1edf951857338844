import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';

test('answers every request and doubles no charge when the upstream is killed and restarted', async () => {
  const { results } = await runFaultLoad(
    async ({ paymentFake }) => {
      paymentFake.setLatency(300); // many requests are in flight
      await pause(150);
      await paymentFake.kill();
      await pause(200);
      await paymentFake.restart();
    },
    { settings: 'perTryTimeout: 1s', url: ({ paymentFake }) => paymentFake.url },
  );
  const reasons = countReasons(results);
  expect(reasons.get('connect')).toBeGreaterThan(0);
  expect(reasons.get('reset')).toBeGreaterThan(0);
});
