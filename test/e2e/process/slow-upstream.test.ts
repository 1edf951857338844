import { expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { countReasons, runFaultLoad } from '../../support/proxy/fault-load.ts';

test('times out an attempt whose response arrives too slowly', async () => {
  const { results } = await runFaultLoad(
    async ({ relay }) => {
      relay.injectFaults({ down: { trickle: { bytes: 10, every: 150 } } });
      await pause(2000);
      relay.clearFaults();
    },
    { settings: 'perTryTimeout: 1s' },
  );
  expect(countReasons(results).get('timeout')).toBeGreaterThan(20);
});

test('reports a charge completed after the attempt timeout as unknown', async () => {
  const { results, journal } = await runFaultLoad(
    async ({ paymentFake }) => {
      paymentFake.setLatency(1800);
      await pause(2000);
      paymentFake.setLatency(20);
    },
    { settings: 'perTryTimeout: 1s' },
  );
  const unknown = new Set(results.flatMap((each) => (each.unknown ? [each.id] : [])));
  const done = journal.filter(({ what, intent }) => what === 'charged' && unknown.has(intent));
  expect(done.length).toBeGreaterThan(20);
});
