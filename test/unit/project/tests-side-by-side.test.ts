import { describe, expect, test } from 'vitest';
import '../../setup/tests-apart.ts';
import { atEnd } from '../../support/at-end.ts';

const order: string[] = [];
const bothRun = Promise.withResolvers<undefined>();
const lastIsOver = Promise.withResolvers<undefined>();

describe.concurrent('tests side by side', () => {
  test('the first, which ends last', async () => {
    await bothRun.promise;
    expect(() => atEnd(() => order.push('first cleaned up'))).not.toThrow();
    await lastIsOver.promise;
    order.push('first over');
  });

  test('the last, which ends first', () => {
    bothRun.resolve(undefined);
    expect(() => {
      atEnd(() => {
        order.push('last cleaned up');
        lastIsOver.resolve(undefined);
      });
    }).not.toThrow();
    order.push('last over');
  });
});

test('clean up at their own end', () => {
  expect(order).toEqual(['last over', 'last cleaned up', 'first over', 'first cleaned up']);
});
