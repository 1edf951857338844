import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad, sum } from '../../support/proxy/fault-load.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const AGAIN = { ...AGAIN_IF_STALLED, timeout: 120_000 };

test('in an outage of ten seconds, rejects at once, probes the upstream, and recovers with it', AGAIN, async () => {
  const stalls = watchStalls();
  const { results, metrics } = await runFaultLoad(
    async ({ relay }) => {
      await relay.refuse();
      relay.break('reset');
      await pause(10_000);
      await relay.accept();
    },
    { settings: 'perTryTimeout: 1s' },
  );
  const blocked = countReasons(results).get('blocked') ?? 0;
  expect(blocked).toBeGreaterThan(results.length / 3);
  // Requests in flight at the start, their retries within the budget, and probes.
  expect(sum(metrics, 'tidegate_upstream_attempts_total', 'code="connect"')).toBeLessThan(blocked / 4);
  const quick = results.filter(({ reason, sentAt, answeredAt }) => reason === 'blocked' && answeredAt - sentAt < 500);
  stalls.unlessStalled(() => expect(quick.length).toBeGreaterThan(blocked / 2));
});
