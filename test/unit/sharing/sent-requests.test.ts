import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { SentRequest } from '../../../src/sharing/protocol/usage-reporter.ts';
import { SentRequests } from '../../../src/sharing/workers/sent-requests.ts';

function sending(serial: number): SentRequest {
  return { sentAt: 1000 + serial, epoch: 1, inFlightAtSend: serial, sendNumber: serial };
}

describe('a sent request', () => {
  test('is found until it is taken, once', () => {
    const sendings = new SentRequests();
    sendings.record(1, sending(1), 1);
    expect(sendings.find(1001)).toEqual(sending(1));
    expect(sendings.take(2)).toBeUndefined();
    expect(sendings.take(1)).toEqual(sending(1));
    expect(sendings.take(1)).toBeUndefined();
    expect(sendings.find(1001)).toBeUndefined();
  });

  test('is found however many others are added and taken meanwhile', () => {
    const sendings = new SentRequests();
    sendings.record(1, sending(1), 1);
    for (let serial = 2; serial <= 10_000; serial += 1) {
      sendings.record(serial, sending(serial), 2);
      expect(sendings.take(serial)).toEqual(sending(serial));
    }
    expect(sendings.find(1001)).toEqual(sending(1));
    expect(sendings.take(1)).toEqual(sending(1));
    expect(sendings.take(1)).toBeUndefined();
    expect(sendings.find(1001)).toBeUndefined();
  });

  test('is found by its time among many', () => {
    const sendings = new SentRequests();
    for (let serial = 1; serial <= 300; serial += 1) sendings.record(serial, sending(serial), serial);
    for (let serial = 2; serial <= 300; serial += 2) sendings.take(serial);
    const found = Array.from({ length: 300 }, (_, i) => sendings.find(1001 + i)?.sendNumber);
    expect(found).toEqual(Array.from({ length: 300 }, (_, i) => (i % 2 === 0 ? i + 1 : undefined)));
  });

  test('is dropped, the oldest first, if no outcome is reported', () => {
    const sendings = new SentRequests();
    for (let serial = 1; serial <= 10_000; serial += 1) sendings.record(serial, sending(serial), 1);
    const known = Array.from({ length: 10_000 }, (_, i) => sendings.take(i + 1)).flatMap(
      (each) => each?.sendNumber ?? [],
    );
    expect(known.length).toBeGreaterThan(64);
    expect(known.length).toBeLessThan(100);
    expect(known).toEqual(Array.from(known, (_, i) => 10_001 - known.length + i));
  });

  test.each([3, 40, 600, 5000])('is found as in a Map, with %i in flight', (most) => {
    const random = seededRandom(most);
    const sendings = new SentRequests();
    const model = new Map<number, SentRequest>();
    let serial = 0;
    for (let step = 0; step < 50_000; step += 1) {
      if (model.size < most && random() < 0.55) {
        serial += 1;
        model.set(serial, sending(serial));
        sendings.record(serial, sending(serial), model.size);
      } else {
        // Mostly the oldest, as responses arrive; sometimes any of them.
        const takenKey = keyAt(model, random() < 0.9 ? 0 : Math.floor(random() * model.size)) ?? serial + 1;
        expect(sendings.take(takenKey)).toEqual(model.get(takenKey));
        model.delete(takenKey);
      }
    }
    for (const [each, known] of model) expect(sendings.take(each)).toEqual(known);
    expect(serial).toBeGreaterThan(10_000);
  });
});

function keyAt(map: ReadonlyMap<number, unknown>, index: number): number | undefined {
  let left = index;
  for (const key of map.keys()) {
    if (left === 0) return key;
    left -= 1;
  }
  return undefined;
}
