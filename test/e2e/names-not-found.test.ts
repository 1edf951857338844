import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test('while no name is found, requests are told that nothing was sent, and nothing is', async () => {
  const { told } = await endure(
    async ({ gate, relay }) => {
      await gate.lookups('EAI_AGAIN');
      relay.break('cut');
      await pause(1000);
      await gate.lookups();
    },
    { settings: 'perTryTimeout: 1s', url: ({ relay }) => relay.url.replace('127.0.0.1', 'localhost') },
  );
  expect(countReasons(told).get('connect')).toBeGreaterThan(20);
}, 90_000);
