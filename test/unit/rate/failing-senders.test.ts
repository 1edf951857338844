import { describe, expect, test } from 'vitest';
import { FailingSenders } from '../../../src/core/rate/breaker/failing-senders.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { eight, from, Line } from '../../support/core/attributed-line.ts';

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
  expect([60_030, 60_031].map((now) => senders.isPassedOver(one, now))).toEqual([true, false]);
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

describe('a sender', () => {
  /** Of an address, and of a client or none. */
  const of = (address: number, client = 0): RequestAttributes => [address, client, 0, 0, 0, 0, 0, 0];

  test('is remembered from its last failure on', () => {
    const senders = new FailingSenders(10_000);
    senders.add(of(1), 0, 0);
    senders.add(of(2), 0, 0);
    senders.add(of(1), 5000, 9000);
    senders.onAccepted(of(3), 9500, 9500);
    expect([of(1), of(2)].map((each) => senders.isPassedOver(each, 15_000))).toEqual([true, false]);
  });

  test('is one of 256 that are remembered: the last ones', () => {
    const senders = new FailingSenders(10_000);
    const all = Array.from({ length: 257 }, (_, i) => of(i + 1));
    for (const each of all) senders.add(each, 0, 0);
    senders.onAccepted(of(900), 10, 10);
    expect(all.map((each) => senders.isPassedOver(each, 20))).toEqual([false, ...all.slice(1).map(() => true)]);
  });

  test('is not passed over by what was accepted before any sender failed', () => {
    const senders = new FailingSenders(10_000);
    senders.onAccepted(of(2), 100, 150);
    senders.add(of(1), 50, 200);
    expect(senders.isPassedOver(of(1), 200)).toBe(false);
  });

  test('is forgotten with all others at the first accepted request after the time of the last one', () => {
    const isEmptyAt = [10_000, 10_001].map((now) => {
      const senders = new FailingSenders(10_000);
      senders.add(of(1), 0, 0);
      senders.onAccepted(of(2), now, now);
      return senders.isEmpty;
    });
    expect(isEmptyAt).toEqual([false, true]);
  });

  test('is its address if the client is unknown', () => {
    const senders = new FailingSenders(10_000);
    for (const address of [1, 2]) senders.add(of(address), 0, 0);
    senders.onAccepted(of(3), 10, 10);
    expect([of(1), of(3), of(0), undefined].map((each) => senders.findPassedOver(each, 20))).toEqual([
      ...[1, undefined, undefined, undefined],
    ]);
    expect(senders.isEmpty).toBe(false);
    senders.onAccepted(of(1), 20, 20);
    expect(senders.isEmpty).toBe(true);
  });
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

/** Fails one request of each of these addresses at a path of its own. */
function fail(line: Line, addresses: readonly string[]): void {
  for (const [i, address] of addresses.entries()) line.ask('failed', from({ address, path: `/${line.now}/${i}` }));
}

describe('an address that fails while others are accepted', () => {
  /** One failure of it is followed by an accepted request of another sender. */
  function passedOver(): Line {
    const line = new Line();
    fail(line, ['one']);
    line.ask('accepted', from({ address: 'other' }));
    return line;
  }

  test('is blocked alone for the part of its paths that its failures share', () => {
    const line = new Line();
    line.ask('failed', from({ address: 'one', path: '/x/1' }));
    line.ask('accepted', from({ address: 'other' }));
    for (const i of eight) line.ask('failed', from({ address: 'one', client: `key ${i}`, path: `/x/${i}` }));
    expect(line.part).toBe('address_path');
    expect(line.rate.delay(line.now, from({ address: 'one', path: '/y' }))).toBe(0);
  });

  test('is not blocked for less than half of all responses', () => {
    const line = passedOver();
    for (const i of eight) {
      line.ask('accepted', from({ address: `other ${i}` }));
      line.ask('accepted', from({ address: 'other' }));
      fail(line, ['one']);
    }
    expect(line.part).toBeUndefined();
  });

  test('counts with all others again once one of its own requests is accepted', () => {
    const line = passedOver();
    line.ask('accepted', from({ address: 'one' }));
    for (const i of eight) fail(line, [i % 3 === 0 ? 'one' : `new ${i}`]);
    expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  });

  test('counts with all others again ten seconds after its last failure', () => {
    const line = passedOver();
    line.now += 10_001;
    for (const i of eight) fail(line, [i % 3 === 0 ? 'one' : `new ${i}`]);
    expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  });

  test('has a block beside those of others, until a probe of its own is accepted', () => {
    const line = passedOver();
    fail(line, ['two']);
    line.ask('accepted', from({ address: 'other' }));
    for (const _ of eight) fail(line, ['one', 'two']);
    line.ask('accepted', from({ address: 'other' }));
    for (const _ of eight) fail(line, ['one', 'two']);
    const isHeld = (address: string): boolean => line.rate.breaker.isHeldBack(from({ address, path: '/new' }));
    expect([isHeld('one'), isHeld('two'), isHeld('other')]).toEqual([true, true, false]);
    line.now += 1000;
    expect(line.ask('accepted', from({ address: 'one' }))).toBe(true);
    expect([isHeld('one'), isHeld('two')]).toEqual([false, true]);
  });
});

test('a path that fails is blocked, although those who ask for it ask for nothing else', () => {
  const line = new Line();
  for (let i = 0; line.part === undefined && i < 100; i += 1) {
    line.ask('failed', from({ address: `a${i % 4}`, path: `/reports/${i}` }));
    line.ask('accepted', from({ address: `b${i % 4}`, path: `/charges/${i}` }));
  }
  expect([line.part, line.rate.breaker.isHeldBack(from({ address: 'b1', path: '/reports/1' }))]).toEqual([
    'path',
    true,
  ]);
});

test('a sender that failed in an outage is not blocked alone when the upstream fails again', () => {
  const line = new Line();
  const all = eight.map((i) => `a${i}`);
  fail(line, all);
  expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
  line.now += 1000;
  expect(line.ask('accepted', from({ address: 'other' }))).toBe(true);
  expect(line.part).toBeUndefined();
  for (let i = 0; line.part === undefined && i < 200; i += 1, line.now += 20) fail(line, all.slice(0, 3));
  expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
});
