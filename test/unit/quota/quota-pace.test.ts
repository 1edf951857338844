import { expect, test } from 'vitest';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { HOUR, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';
import { World } from '../../support/core/world.ts';

/** Two clients that always have three requests in the queue, for a minute. Returns how many of each are sent. */
function saturate(world: World): Record<'important' | 'other', number> {
  const sent = { important: 0, other: 0 };
  const waiting: { readonly client: keyof typeof sent; readonly queued: QueuedTicket }[] = [];
  const arrive = (client: keyof typeof sent): void => {
    waiting.push({ client, queued: world.arrive({ client, weight: client === 'important' ? 4 : 1 }) });
  };
  for (const client of ['important', 'other', 'important', 'other', 'important', 'other'] as const) arrive(client);
  const start = world.now;
  for (let elapsed = 0; elapsed < 60_000; elapsed += 10) {
    world.runUntil(start + elapsed);
    for (const { client, queued } of waiting.splice(0)) {
      if (queued.admission === undefined) {
        waiting.push({ client, queued });
        continue;
      }
      if (queued.admission.kind === 'admitted') {
        sent[client] += 1;
        world.serve(queued);
      }
      arrive(client);
    }
  }
  return sent;
}

test.each([0, 3600])('serves clients by their weights at an even pace, with a reserve of %i', (reserve) => {
  const quotas = [quotaSettings({ name: 'hour', limit: 36_000, reserve, pace: 'even', period: UTC_HOUR })];
  const world = new World({ random: () => 0.5, upstream: { quotas, queue: { maxWait: 5000, maxDepth: 100 } } });
  world.now = 11 * HOUR;
  const { important, other } = saturate(world);
  expect(important + other).toBeGreaterThan(590); // 10 a second
  expect(important / other).toBeGreaterThan(3.5);
  expect(important / other).toBeLessThan(4.5);
});

test('paces requests that may not use the reserve by what the reserve leaves', () => {
  const quotas = [quotaSettings({ name: 'hour', limit: 36_000, reserve: 18_000, pace: 'even', period: UTC_HOUR })];
  const world = new World({ upstream: { quotas } });
  const [first, second] = [world.arrive(), world.arrive()];
  world.runUntil(190);
  expect([first.admission?.kind, second.admission]).toEqual(['admitted', undefined]);
  world.runUntil(210);
  expect(second.admission?.kind).toBe('admitted');
});
