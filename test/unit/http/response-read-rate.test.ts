import { expect, test } from 'vitest';
import { ResponseReadRate } from '../../../src/http/response/response-read-rate.ts';
import { StalledClients } from '../../../src/http/response/stalled-clients.ts';
import type { StalledClient } from '../../../src/http/response/stalled-clients.ts';

const MIB = 1024 * 1024;

test.each([
  ['has read more than can wait unread', 7 * MIB, 5000],
  ['may have read nothing', 5 * MIB, 1000],
])(
  'a client that stalls for the first time and %s, with %i bytes written, may be aborted after %i ms',
  (_, bytes, ms) => {
    const clock = { now: () => 0 };
    const stalled: StalledClient[] = [];
    class Registry extends StalledClients {
      override add(client: StalledClient): void {
        stalled.push(client);
      }
    }
    const connections = () => ({ totalConnections: () => 1, freeConnections: () => 1 });
    const registry = new Registry({ clock, connections, awaitedEnds: () => [] });
    const rate = new ResponseReadRate({
      ...{ upstream: 'api', addressGroup: 'a', ticket: { inFlightLimits: [] }, clock, registry },
      ...{ window: 30_000, minRate: 500, onTooSlow: () => undefined },
    });
    rate.onBlocked(bytes);
    expect(stalled.map(({ givesWayAt }) => givesWayAt)).toEqual([ms]);
  },
);
