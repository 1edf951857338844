import { describe, expect, test } from 'vitest';
import { FailingSenders } from '../../../src/core/rate/breaker/failing-senders.ts';
import { from, Line } from '../../support/core/attributed-line.ts';

const [one, two, other] = ['one', 'two', 'other'].map((address) => from({ address }));

/** One and two were rejected at 0 and 10 ms. */
function rejected(): FailingSenders {
  const senders = new FailingSenders(60_000);
  senders.add(one, 0, 0);
  senders.add(two, 10, 10);
  return senders;
}

test('a rejected sender is passed over once a later request of another one was accepted', () => {
  const senders = rejected();
  expect([senders.isPassedOver(one, 20), senders.isPassedOver(other, 20)]).toEqual([false, false]);
  senders.onAccepted(other, 5, 20);
  expect([senders.isPassedOver(one, 20), senders.isPassedOver(two, 20)]).toEqual([true, false]);
  senders.add(one, 30, 30);
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

describe('with requests that take longer than it takes until the next rejection', () => {
  test('a sender is not passed over once a request that it sent between its rejections was accepted', () => {
    const senders = rejected();
    senders.onAccepted(other, 15, 20);
    for (let sentAt = 20; sentAt < 2100; sentAt += 15) senders.add(one, sentAt, sentAt);
    expect(senders.isPassedOver(one, 2100)).toBe(true);
    senders.onAccepted(one, 100, 2100);
    expect([senders.isPassedOver(one, 2100), senders.isEmpty]).toEqual([false, true]);
  });

  test('a sender stays passed over if a request that it sent before its first rejection is accepted late', () => {
    const senders = new FailingSenders(60_000);
    senders.add(one, 100, 100);
    senders.onAccepted(other, 110, 120);
    senders.add(one, 130, 130);
    senders.onAccepted(one, 90, 2090);
    expect(senders.isPassedOver(one, 2090)).toBe(true);
  });

  test('a sender is passed over once a request that another one sent between its rejections was accepted', () => {
    const senders = new FailingSenders(60_000);
    for (let sentAt = 0; sentAt < 2100; sentAt += 15) senders.add(one, sentAt, sentAt);
    senders.onAccepted(other, 100, 2100);
    expect(senders.isPassedOver(one, 2100)).toBe(true);
  });
});

test('rejections of a client whose slow requests are accepted now and then cut the rate', () => {
  const { rate } = new Line({ initialRate: 100 });
  const [slow, fast] = [from({ address: 'slow', path: '/slow' }), from({ address: 'fast', path: '/fast' })];
  const reject = (at: number): unknown =>
    rate.onRejected(
      { sentAt: at, inFlightAtSend: 0, retryAfterMs: undefined, activeClients: 2, attributes: slow },
      at + 1,
    );
  for (let at = 2000; at < 20_000; at += 100) {
    rate.advance(at, true);
    reject(at);
    reject(at + 15);
    if (at % 2000 === 0) rate.onAccepted(at + 20, 0, at + 30, fast);
    rate.onAccepted(at - 1960, 0, at + 40, slow);
  }
  expect(rate.rate).toBeLessThan(60);
});

test('a client is passed over at any address', () => {
  const senders = new FailingSenders(60_000);
  senders.add(from({ address: 'gateway', client: 'one' }), 0, 0);
  senders.onAccepted(other, 5, 5);
  expect(senders.isPassedOver(from({ address: 'elsewhere', client: 'one' }), 10)).toBe(true);
  expect(senders.isPassedOver(from({ address: 'elsewhere', client: 'two' }), 10)).toBe(false);
});

test('a request that takes longer to fail than a sender is remembered counts from its failure', () => {
  const senders = new FailingSenders(10_000);
  senders.add(one, 0, 30_000);
  senders.onAccepted(other, 29_990, 30_010);
  senders.add(one, 5000, 35_000);
  expect([senders.isPassedOver(one, 35_000), senders.isPassedOver(one, 45_001)]).toEqual([true, false]);
});

test('a hundred addresses with a client each are remembered', () => {
  const senders = new FailingSenders(10_000);
  const all = Array.from({ length: 100 }, (_, i) => from({ address: `address ${i}`, client: `client ${i}` }));
  for (const each of all) senders.add(each, 0, 0);
  senders.onAccepted(other, 10, 20);
  expect(all.every((each) => senders.isPassedOver(each, 20))).toBe(true);
});

test('a client that fails behind the address of others is passed over, and its address is not', () => {
  const senders = new FailingSenders(10_000);
  const behind = (client: string) => from({ address: 'gateway', client });
  senders.add(behind('failing'), 0, 10);
  senders.onAccepted(behind('good'), 20, 30);
  expect(senders.isPassedOver(behind('failing'), 40)).toBe(true);
  expect(senders.isPassedOver(behind('new'), 40)).toBe(false);
  senders.add(behind('failing'), 50, 60);
  senders.onAccepted(behind('failing'), 70, 80);
  expect([senders.isPassedOver(behind('failing'), 90), senders.isEmpty]).toEqual([false, true]);
});
