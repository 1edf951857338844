import { expect, test } from 'vitest';
import { RejectedSenders } from '../../../src/core/rate/breaker/rejected-senders.ts';
import { from } from '../../support/core/attributed-line.ts';

const [one, two, other] = ['one', 'two', 'other'].map((address) => from({ address }));

/** One and two were rejected at 0 and 10 ms. */
function rejected(): RejectedSenders {
  const senders = new RejectedSenders();
  senders.onRejected(one, 0);
  senders.onRejected(two, 10);
  return senders;
}

test('a rejected sender is passed over once a later request of another one was accepted', () => {
  const senders = rejected();
  expect([senders.isPassedOver(one, 20), senders.isPassedOver(other, 20)]).toEqual([false, false]);
  senders.onAccepted(other, 5, 20);
  expect([senders.isPassedOver(one, 20), senders.isPassedOver(two, 20)]).toEqual([true, false]);
  senders.onRejected(one, 30);
  senders.onAccepted(other, 40, 50);
  expect([senders.isPassedOver(one, 60_000), senders.isPassedOver(two, 60_000)]).toEqual([true, true]);
  expect(senders.isPassedOver(one, 60_031)).toBe(false);
});

test('no sender is passed over once a rejected one, or an unknown one, was accepted', () => {
  for (const accepted of [two, undefined]) {
    const senders = rejected();
    senders.onAccepted(other, 15, 20);
    senders.onAccepted(accepted, 25, 30);
    expect([senders.isPassedOver(one, 30), senders.isPassedOver(two, 30), senders.isEmpty]).toEqual([
      ...[false, false, true],
    ]);
  }
});

test('a client is passed over at any address', () => {
  const senders = new RejectedSenders();
  senders.onRejected(from({ address: 'gateway', client: 'one' }), 0);
  senders.onAccepted(other, 5, 5);
  expect(senders.isPassedOver(from({ address: 'elsewhere', client: 'one' }), 10)).toBe(true);
  expect(senders.isPassedOver(from({ address: 'elsewhere', client: 'two' }), 10)).toBe(false);
});
