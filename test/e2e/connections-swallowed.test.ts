import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test('while connections are neither taken nor refused, requests are told in time that nothing was sent', async () => {
  const { told } = await endure(
    async ({ relay }) => {
      await relay.swallow();
      relay.break('cut');
      await pause(2500);
      await relay.accept();
    },
    { settings: 'connectTimeout: 1s, perTryTimeout: 2s' },
  );
  expect(countReasons(told).get('connect')).toBeGreaterThan(20);
}, 90_000);
