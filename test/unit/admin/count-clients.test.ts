import { describe, expect, test } from 'vitest';
import { toClientRow } from '../../../src/admin/operations/admin-rows.ts';
import { countClients } from '../../../src/admin/operations/count-clients.ts';
import type { ClientStateView, ClientView, ProcessView } from '../../../src/admin/operations/process-api.ts';
import { formatClientCount } from '../../../src/admin/page/text/client-count.js';
import type { ClientState } from '../../../src/core/events/event-labels.ts';
import { ZERO_REQUEST_COUNTS } from '../../../src/telemetry/metrics/request-counts.ts';
import { NO_CLIENTS } from '../../support/admin/metric-builders.ts';

function viewOf(clientStates: readonly ClientStateView[], isListed = true, upstreams = 3): ProcessView {
  const byState = { ...NO_CLIENTS.byState };
  for (const [, , state] of clientStates) byState[state] += 1;
  const name = { ...({} as ProcessView['upstreams'][number]) };
  return {
    counts: ZERO_REQUEST_COUNTS,
    upstreams: Array.from({ length: upstreams }, () => name),
    endpoints: [],
    clients: { ...NO_CLIENTS, tracked: clientStates.length, byState },
    troubled: [],
    clientStates: isListed ? clientStates : undefined,
    isDegraded: false,
  };
}

function merge(...views: readonly ProcessView[]): ReturnType<typeof countClients> {
  return countClients(new Map(views.map((view, process) => [process, view])));
}

function stateOf(key: string, upstream: string, state: ClientState = 'normal'): ClientStateView {
  return [upstream, key, state];
}

const ALL = ['a', 'b', 'c'].flatMap((key) => ['pay', 'ledger', 'mail'].map((upstream) => stateOf(key, upstream)));

describe('the clients of several processes', () => {
  test('are each counted once, and as one row for each upstream', () => {
    expect(merge(viewOf(ALL))).toMatchObject({ distinct: 3, tracked: 9 });
    expect(merge(viewOf([]), viewOf(ALL), viewOf(ALL))).toMatchObject({
      distinct: 3,
      tracked: 9,
      byState: { normal: 9 },
    });
    expect(merge(viewOf([]))).toMatchObject({ distinct: 0, tracked: 0, allowance: { min: 1, mean: 1 } });
  });

  test('are counted in the most restricted state that any process reports, which their rows show', () => {
    const one = viewOf([stateOf('a', 'pay', 'restoring'), stateOf('b', 'pay', 'restoring')]);
    const other = viewOf([stateOf('a', 'pay', 'restoring'), stateOf('b', 'pay', 'backoff')]);
    expect(merge(one, other).byState).toEqual({ normal: 0, held: 0, backoff: 1, cooldown: 0, restoring: 1 });
  });

  test('are counted once for each process if one of the processes has too many to list', () => {
    expect(merge(viewOf(ALL, false), viewOf(ALL))).toMatchObject({ distinct: undefined, tracked: 18 });
    expect(merge(viewOf(ALL, false))).toMatchObject({ distinct: undefined, tracked: 9 });
    expect(merge(viewOf([]), viewOf(ALL.slice(0, 1), false, 1))).toMatchObject({ distinct: 1, tracked: 1 });
  });
});

test('a client that is still restoring is shown with less than its whole allowance', () => {
  const view = {
    rank: { group: 3, value: 0, slot: 0 },
    upstream: 'pay',
    key: 'a',
    name: undefined,
    state: 'restoring',
    demand: 0,
  } as const;
  const rest = { share: undefined, queued: 0, heldUntil: 0, nextSlot: 0, calmAt: 0, lastSeen: 0 };
  const allowanceOf = (allowance: ClientView['allowance']): number =>
    toClientRow({ ...view, ...rest, allowance }, { now: 0, origin: 0 }).allowance;
  expect([0.25, 0.9994, 0.9999, 1].map(allowanceOf)).toEqual([0.25, 0.999, 0.999, 1]);
});

test('the page shows the number of clients and the number of rows', () => {
  const text = (clients: number | null, rows: number, shown = rows): string =>
    formatClientCount({ clients, rows, shown }).replaceAll(/\s/g, ' ');
  expect(text(3, 9)).toBe('3 clients, 9 rows');
  expect(text(3, 9, 8)).toBe('3 clients, 8 of 9 rows');
  expect(text(1, 1)).toBe('1 client, 1 row');
  expect(text(null, 20_000, 50)).toBe('50 of 20 000 rows');
});
