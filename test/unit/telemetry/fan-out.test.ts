import { expect, test } from 'vitest';
import { fanOutEvents } from '../../../src/telemetry/event-fan-out.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

const EVENT: ProxyEvent = { type: 'arrived', route: '/' };

test('calls every listener, in order', () => {
  const received: string[] = [];
  const { listen, failures } = fanOutEvents([() => received.push('first'), () => received.push('second')], () => {});
  listen(EVENT);
  expect(received).toEqual(['first', 'second']);
  expect(failures()).toBe(0);
});

test('a listener that throws prevents neither the other listeners nor the caller, and is reported once', () => {
  const received: ProxyEvent[] = [];
  const reports: unknown[] = [];
  const broken = new Error('broken');
  const { listen, failures } = fanOutEvents(
    [
      () => {
        throw broken;
      },
      (event) => received.push(event),
    ],
    (error, event) => reports.push([error, event]),
  );
  listen(EVENT);
  listen(EVENT);
  expect(received).toEqual([EVENT, EVENT]);
  expect(failures()).toBe(2);
  expect(reports).toEqual([[broken, EVENT]]);
});

test('an exception of the reporter does not reach the caller', () => {
  const fail = () => {
    throw new Error('broken');
  };
  const { listen, failures } = fanOutEvents([fail], fail);
  expect(() => listen(EVENT)).not.toThrow();
  expect(failures()).toBe(1);
});
