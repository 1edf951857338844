import { expect, test } from 'vitest';
import { fanOut } from '../../src/telemetry/event-fan-out.ts';
import type { TideEvent } from '../../src/core/events/proxy-events.ts';

const EVENT: TideEvent = { type: 'arrived', route: '/' };

test('every listener is told, in order', () => {
  const told: string[] = [];
  const { listen, failures } = fanOut([() => told.push('first'), () => told.push('second')], () => {});
  listen(EVENT);
  expect(told).toEqual(['first', 'second']);
  expect(failures()).toBe(0);
});

test('a listener that throws stops neither the others nor the teller, and is reported once', () => {
  const told: TideEvent[] = [];
  const reports: unknown[] = [];
  const broken = new Error('broken');
  const { listen, failures } = fanOut(
    [
      () => {
        throw broken;
      },
      (event) => told.push(event),
    ],
    (error, event) => reports.push([error, event]),
  );
  listen(EVENT);
  listen(EVENT);
  expect(told).toEqual([EVENT, EVENT]);
  expect(failures()).toBe(2);
  expect(reports).toEqual([[broken, EVENT]]);
});

test('a report that throws is not told to the teller either', () => {
  const fail = () => {
    throw new Error('broken');
  };
  const { listen, failures } = fanOut([fail], fail);
  expect(() => listen(EVENT)).not.toThrow();
  expect(failures()).toBe(1);
});
