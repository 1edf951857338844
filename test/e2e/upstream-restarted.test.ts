import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test('an upstream that is killed and restarted loses no answer, and charges nobody twice', async () => {
  const { told } = await endure(
    async ({ till }) => {
      till.work(300); // many are on their way
      await pause(150);
      await till.kill();
      await pause(200);
      await till.restart();
    },
    { settings: 'perTryTimeout: 1s', url: ({ till }) => till.url },
  );
  const reasons = countReasons(told);
  expect(reasons.get('connect')).toBeGreaterThan(0);
  expect(reasons.get('reset')).toBeGreaterThan(0);
}, 90_000);
