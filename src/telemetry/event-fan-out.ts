import type { EventSink, ProxyEvent } from '../core/events/proxy-events.ts';

export interface EventFanOut {
  readonly listen: EventSink;
  /** Times a listener threw. */
  readonly failures: () => number;
}

/**
 * Delivers every event to every listener, in order. An error of a listener affects neither the others nor the request: it is
 * counted, and the first one of each listener is passed to `report`.
 */
export function fanOutEvents(
  listeners: readonly EventSink[],
  report: (error: unknown, event: ProxyEvent) => void,
): EventFanOut {
  const reported = new Set<EventSink>();
  let failures = 0;

  const fail = (listener: EventSink, error: unknown, event: ProxyEvent): void => {
    failures += 1;
    if (reported.has(listener)) return;
    reported.add(listener);
    try {
      report(error, event);
    } catch {
      // The log itself may be broken; the error is counted nevertheless.
    }
  };

  return {
    listen: (event) => {
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (error) {
          fail(listener, error, event);
        }
      }
    },
    failures: () => failures,
  };
}
