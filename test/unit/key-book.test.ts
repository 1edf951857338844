import { expect, test } from 'vitest';
import { KeyBook } from '../../src/http/idempotency/idempotency-registry.ts';

test('remembers as many answered writes as a tenth of the heap has room for', () => {
  const keys = new KeyBook(10 * 10 * 256);
  const credential = { kind: 'header', header: 'authorization', value: 'a' } as const;
  const enter = (name: string) => keys.enter(keys.identify('up', name, credential, undefined));
  for (let i = 0; i < 11; i += 1) {
    const write = enter(`order ${i}`);
    keys.sent(write, i);
    keys.keep(write, { firstSentAt: i, isAnswered: true, endpoint: undefined });
    keys.over(write);
    keys.leave(write);
  }
  expect(keys.recall(enter('order 0'), 1000, 20)).toBeUndefined();
  expect(keys.recall(enter('order 1'), 1000, 20)).toMatchObject({ isAnswered: true, firstSentAt: 1 });
});
