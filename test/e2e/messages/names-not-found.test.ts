import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

test('sends nothing, and reports that, while DNS lookups fail', async () => {
  const run = await runFaultLoad(
    async ({ gate, relay, results }) => {
      await gate.setDnsFailure('EAI_AGAIN');
      relay.break('cut');
      await pause(1000);
      await eventually(
        () => countReasons(results()).get('connect') ?? 0,
        (count) => count > 20,
      );
      await gate.setDnsFailure();
    },
    { settings: 'perTryTimeout: 1s', url: ({ relay }) => relay.url.replace('127.0.0.1', 'localhost') },
  );
  expect(countReasons(run.results).get('connect')).toBeGreaterThan(20);
});
