import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';

test('reports in time that nothing was sent, while connection attempts get no reply', async () => {
  const { results } = await runFaultLoad(
    async ({ relay }) => {
      await relay.blackhole();
      relay.break('cut');
      await pause(2500);
      await relay.accept();
    },
    { settings: 'connectTimeout: 1s, perTryTimeout: 2s' },
  );
  expect(countReasons(results).get('connect')).toBeGreaterThan(20);
});
