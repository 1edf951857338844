import type { Listen, TideEvent } from '../core/events/proxy-events.ts';

export interface FanOut {
  readonly listen: Listen;
  /** Times a listener threw. */
  readonly failures: () => number;
}

/**
 * Tells every listener of every event, in order. A listener that throws harms neither the others nor the request: it is
 * counted, and its first failure is handed to `report`.
 */
export function fanOut(listeners: readonly Listen[], report: (error: unknown, event: TideEvent) => void): FanOut {
  const reported = new Set<Listen>();
  let failures = 0;

  const fail = (listener: Listen, error: unknown, event: TideEvent): void => {
    failures += 1;
    if (reported.has(listener)) return;
    reported.add(listener);
    try {
      report(error, event);
    } catch {
      // The log itself may be what is broken; the count remains.
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
