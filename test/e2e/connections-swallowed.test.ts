import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test('while connections are neither taken nor refused, requests are told in time that nothing was sent', async () => {
  const { told } = await endure(
    async ({ relay }) => {
      await relay.swallow();
      relay.break('cut');
      await pause(1500);
      await relay.accept();
    },
    { settings: 'connectTimeout: 300ms, perTryTimeout: 1s' },
  );
  expect(countReasons(told).get('connect')).toBeGreaterThan(20);
}, 60_000);
