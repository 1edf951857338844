import { describe, expect, onTestFinished, test } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import { OverloadMonitor } from '../../../src/http/overload/overload-monitor.ts';
import { senderAddress } from '../../../src/http/overload/sender-address.ts';
import type { HttpServerRequest } from '../../../src/http/server/server-request.ts';
import { makeAddressHash, makeTrustCheck } from '../../../src/http/request/client-identity.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

const DELAY = 500;

/** A monitor whose time passes with its requests. Each returns whether it is shed. */
function start() {
  let now: Millis = 0;
  const settings = { eventLoopDelay: DELAY, heapUsed: 1 };
  const clock = { now: () => now };
  const monitor = new OverloadMonitor(settings, { clock, random: seededRandom(3), listen: () => undefined });
  onTestFinished(() => monitor.stop());
  return {
    monitor,
    overload: (samples: number) => {
      for (let i = 0; i < samples; i += 1) monitor.loadShedding.onSample(2 * DELAY, 100 + 2 * DELAY, 0);
    },
    request: (address: string | undefined) => {
      now += 1;
      return monitor.shouldShed(() => address);
    },
  };
}

describe('an overloaded process', () => {
  test('sheds requests of the address that floods, and no others', () => {
    const { monitor, overload, request } = start();
    overload(5);
    const { shedShare } = monitor.loadShedding;
    expect(shedShare).toBeGreaterThan(0.4);
    const shed = { flood: 0, polite: 0 };
    for (let i = 0; i < 10_000; i += 1) {
      const address = i % 50 === 0 ? 'polite' : 'flood';
      if (request(address)) shed[address] += 1;
    }
    expect(shed.polite).toBe(0);
    expect(shed.flood / 10_000).toBeCloseTo(shedShare, 1);
    expect(monitor.bounds[0]).toMatchObject({ name: 'event_loop', reached: shed.flood });
  });

  test.each(['10.0.0.1', undefined])('sheds its share of requests that are all of the address %s', (address) => {
    const { monitor, overload, request } = start();
    overload(5);
    let shed = 0;
    for (let i = 0; i < 10_000; i += 1) if (request(address)) shed += 1;
    expect(shed / 10_000).toBeCloseTo(monitor.loadShedding.shedShare, 1);
  });

  test('sheds its share of requests of unknown addresses, although another floods', () => {
    const { monitor, overload, request } = start();
    overload(5);
    let shed = 0;
    for (let i = 0; i < 4000; i += 1) {
      for (let n = 0; n < 4; n += 1) request('flood');
      if (request(undefined)) shed += 1;
    }
    expect(shed / 4000).toBeCloseTo(monitor.loadShedding.shedShare, 1);
  });
});

test('a process that is not overloaded does not compute addresses', () => {
  const { monitor } = start();
  expect(
    monitor.shouldShed(() => {
      throw new Error('computed');
    }),
  ).toBe(false);
});

describe('a request counts for', () => {
  const isTrustedProxy = makeTrustCheck(['10.0.0.0/8'], false);
  const hashAddress = makeAddressHash({ cachedHash: (toInput) => (text) => `hash of ${toInput(text)}` });
  const addressOf = (remoteAddress: string, forwardedFor?: string): string | undefined => {
    const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
    const request = { headers, socket: { remoteAddress } } as unknown as HttpServerRequest;
    return senderAddress(request, { isTrustedProxy, hashAddress });
  };

  test.each([
    ['its peer', '192.0.2.1', undefined, '192.0.2.1'],
    ['its peer, whatever address it claims', '192.0.2.1', '192.0.2.9', '192.0.2.1'],
    ['the network of its peer', '2001:db8::1', undefined, '2001:db8::/64'],
    ['the client that a trusted proxy names', '10.0.0.1', '192.0.2.9', '192.0.2.9'],
    ['a client in the network of the proxies', '10.0.0.1', '10.0.0.7', '10.0.0.7'],
  ])('%s', (_, peer, forwardedFor, address) => {
    expect(addressOf(peer, forwardedFor)).toBe(`hash of ip\0${address}`);
  });

  test.each([undefined, '', ','])('no address, if a trusted proxy sends X-Forwarded-For %j', (forwardedFor) => {
    expect(addressOf('10.0.0.1', forwardedFor)).toBeUndefined();
  });
});
