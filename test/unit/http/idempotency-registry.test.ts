import { expect, test } from 'vitest';
import { IdempotencyRegistry } from '../../../src/http/idempotency/idempotency-registry.ts';

test('remembers as many answered writes as fit into a tenth of the heap', () => {
  const keys = new IdempotencyRegistry(10 * 10 * 256);
  const credential = { kind: 'header', header: 'authorization', value: 'a', owner: 'a' } as const;
  const enter = (name: string) => keys.join(keys.identify('up', name, credential, undefined));
  for (let i = 0; i < 11; i += 1) {
    const write = enter(`order ${i}`);
    keys.onSent(write, i);
    keys.record(write, { firstSentAt: i, isAnswered: true });
    keys.onAttemptEnd(write);
    keys.leave(write);
  }
  expect(keys.recall(enter('order 0'), 1000, 20)).toBeUndefined();
  expect(keys.recall(enter('order 1'), 1000, 20)).toMatchObject({ isAnswered: true, firstSentAt: 1 });
});
