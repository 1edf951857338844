import { describe, expect, test } from 'vitest';
import { ConnectionSilence } from '../../../src/sharing/redis/connection-silence.ts';
import { StoreDegradation } from '../../../src/sharing/redis/store-degradation.ts';

/** When requests were sent, of those that ask each 25 ms. */
function sentWithin(silence: ConnectionSilence, from: number, until: number): number[] {
  const sent: number[] = [];
  for (let now = from; now < until; now += 25) if (silence.maySend(false, now)) sent.push(now);
  return sent;
}

describe('a connection on which Redis does not respond', () => {
  test('gets one request after 125 ms, and each further one after twice as long, up to 2 s', () => {
    const silence = new ConnectionSilence();
    expect(silence.onTimeout(1000, 1150)).toBe(false);
    expect(sentWithin(silence, 1150, 9000)).toEqual([1150, 1275, 1525, 2025, 3025, 5025, 7025]);
    expect(silence.maySend(true, 7030)).toBe(true);
  });

  test('gets all requests again after a response', () => {
    const silence = new ConnectionSilence();
    silence.onTimeout(1000, 1150);
    silence.maySend(false, 1150);
    silence.onResponse(1200);
    expect(sentWithin(silence, 1200, 1300)).toHaveLength(4);
  });

  test('gets one request at once after a sign that Redis responds again', () => {
    const silence = new ConnectionSilence();
    silence.onTimeout(1000, 1150);
    sentWithin(silence, 1150, 6000);
    silence.onRecoverySign();
    expect(sentWithin(silence, 6000, 6200)).toEqual([6000, 6125]);
  });

  test('is replaced after 2 s without any response, and not again within 2 s', () => {
    const silence = new ConnectionSilence();
    const replaced = [];
    for (let sentAt = 1000; sentAt < 7000; sentAt += 500) {
      if (silence.onTimeout(sentAt, sentAt + 150)) replaced.push(sentAt + 150);
    }
    expect(replaced).toEqual([3150, 5150]);
  });

  test('is one that has responded to no request that was sent since: a single slow response is no sign', () => {
    const silence = new ConnectionSilence();
    silence.onResponse(1100);
    expect(silence.onTimeout(1000, 9000)).toBe(false);
    expect(sentWithin(silence, 9000, 9100)).toHaveLength(4);
  });
});

describe('a process is degraded', () => {
  function observe() {
    const changes: boolean[] = [];
    return { changes, degradation: new StoreDegradation((isDegraded) => changes.push(isDegraded)) };
  }

  test('while it keeps its limits alone, or while requests about keys fail', () => {
    const { changes, degradation } = observe();
    degradation.onStoreRequest('timeout', 0);
    degradation.setLimitsAlone(true);
    degradation.onStoreRequest('ok', 2000);
    expect(changes).toEqual([true]);
    degradation.setLimitsAlone(false);
    expect(changes).toEqual([true, false]);
  });

  test('once, while requests about keys fail and succeed in turn', () => {
    const { changes, degradation } = observe();
    for (let now = 0; now < 10_000; now += 400) degradation.onStoreRequest(now % 800 === 0 ? 'error' : 'ok', now);
    expect(changes).toEqual([true]);
    degradation.onStoreRequest('ok', 11_000);
    expect(changes).toEqual([true, false]);
  });

  test('no longer with a new connection', () => {
    const { changes, degradation } = observe();
    degradation.onStoreRequest('error', 0);
    degradation.onConnected();
    expect(changes).toEqual([true, false]);
  });
});
