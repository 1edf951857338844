import { expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import { countReasons, endure } from '../support/under-load.ts';

test('answers that come in crumbs are waited for no longer than an attempt may take', async () => {
  const { told } = await endure(
    async ({ relay }) => {
      relay.spoil({ down: { trickle: { bytes: 10, every: 150 } } });
      await pause(2000);
      relay.heal();
    },
    { settings: 'perTryTimeout: 1s' },
  );
  expect(countReasons(told).get('timeout')).toBeGreaterThan(20);
}, 90_000);

test('work that takes longer than an attempt may, and is done all the same, is told as unknown', async () => {
  const { told, books } = await endure(
    async ({ till }) => {
      till.work(1800);
      await pause(2000);
      till.work(20);
    },
    { settings: 'perTryTimeout: 1s' },
  );
  const unknown = new Set(told.flatMap((each) => (each.unknown ? [each.id] : [])));
  const done = books.filter(({ what, intent }) => what === 'charged' && unknown.has(intent));
  expect(done.length).toBeGreaterThan(20);
}, 90_000);
