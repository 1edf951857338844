import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

test('reports in time that nothing was sent, while connection attempts get no reply', async () => {
  const run = await runFaultLoad(
    async ({ relay, results }) => {
      await relay.blackhole();
      relay.break('cut');
      await pause(2500);
      await eventually(
        () => countReasons(results()).get('connect') ?? 0,
        (count) => count > 20,
      );
      await relay.accept();
    },
    { settings: 'connectTimeout: 1s, perTryTimeout: 2s' },
  );
  expect(countReasons(run.results).get('connect')).toBeGreaterThan(20);
});
