import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure, sum } from '../support/under-load.ts';

test('in an outage of ten seconds clients are told at once, the upstream is asked now and then, and found when it is back', async () => {
  const { told, metrics } = await endure(
    async ({ relay }) => {
      await relay.refuse();
      relay.break('reset');
      await pause(10_000);
      await relay.accept();
    },
    { settings: 'perTryTimeout: 1s' },
  );
  const blocked = countReasons(told).get('blocked') ?? 0;
  expect(blocked).toBeGreaterThan(told.length / 3);
  // Those on their way when it began, as often as their budget allows, and the probes.
  expect(sum(metrics, 'tidegate_upstream_attempts_total', 'code="connect"')).toBeLessThan(blocked / 4);
  const quick = told.filter(({ reason, asked, at }) => reason === 'blocked' && at - asked < 500);
  expect(quick.length).toBeGreaterThan(blocked / 2);
}, 90_000);
