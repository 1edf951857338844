import { expect, test } from 'vitest';
import type { ClientRow } from '../../../src/admin/api/response-schemas.ts';
import type { UpstreamStatus } from '../../../src/admin/api/upstream-schemas.ts';
import { OperatorCommands } from '../../../src/admin/operations/operator-commands.ts';
import type { ProcessGroup, QueryInput } from '../../../src/admin/operations/process-api.ts';
import type { ProcessFacts } from '../../../src/admin/operations/process-facts.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

const CLIENT = '0123456789abcdef';
const row = (upstream: string, allowance: number) =>
  ({ key: CLIENT, upstream, state: 'backoff', allowance, heldUntil: null }) as ClientRow;

interface Situation {
  /** The processes that respond in time, the primary included. */
  readonly responding?: readonly number[];
  readonly workers?: number;
  /** The upstreams at which the client is known. */
  readonly knownAt?: readonly string[];
}

function operate({ responding = [0], workers = 1, knownAt = [] }: Situation = {}) {
  const events: ProxyEvent[] = [];
  let pinned: number | null = null;
  let allowance = 0.5;
  const turn = () => new Promise((resolve) => void setImmediate(resolve));
  const processes: ProcessGroup = {
    query: async (name, input) => {
      await turn();
      const first: unknown = input(0);
      if (name === 'applyOverride') {
        const { order } = first as QueryInput<'applyOverride'>;
        pinned = order.action === 'pin' ? order.rate : null;
        return new Map(responding.map((process) => [process, null as never]));
      }
      allowance = 1;
      return new Map(responding.map((process) => [process, knownAt as never]));
    },
  };
  const commands = new OperatorCommands({
    processes,
    clock: { now: () => 0 },
    facts: () => ({ mode: 'enforce', store: 'memory', workers, phase: 'ready' }) as ProcessFacts,
    maxRateOf: () => undefined,
    listen: (event) => void events.push(event),
    drain: () => undefined,
    upstreams: async () => {
      await turn();
      const status = {
        name: 'till',
        state: 'open',
        rate: pinned,
        pinned,
        blockedBy: null,
        until: null,
        learnedRate: null,
        nestedLimits: [],
        scope: 'upstream',
      };
      return [status as unknown as UpstreamStatus];
    },
    findClient: () => Promise.resolve(knownAt.map((upstream) => row(upstream, allowance))),
    findClients: () => Promise.resolve([]),
  });
  const audits = () => events.filter(({ type }) => type === 'operator-audit');
  return { commands, audits };
}

test('actions on one upstream at the same time are logged one after the other, each with its own states', async () => {
  const { commands, audits } = operate();
  await Promise.all([
    commands.applyOverride('till', { do: 'pin', rate: 5 }, 'me'),
    commands.applyOverride('till', { do: 'pin', rate: 9 }, 'you'),
    commands.applyOverride('till', { do: 'unpin' }, 'me'),
  ]);
  expect(audits()).toMatchObject([
    { by: 'me', outcome: 'done', before: { pinned: null }, after: { pinned: 5 } },
    { by: 'you', outcome: 'done', before: { pinned: 5 }, after: { pinned: 9 } },
    { by: 'me', outcome: 'done', before: { pinned: 9 }, after: { pinned: null } },
  ]);
});

test('an action that a worker has not confirmed is logged as unconfirmed, and its response says so', async () => {
  const { commands, audits } = operate({ workers: 2, responding: [0, 2] });
  const result = await commands.applyOverride('till', { do: 'pin', rate: 5 }, 'me');
  expect(result).toMatchObject({ kind: 'done' });
  expect(JSON.stringify(result)).toContain('Not all processes have confirmed it so far');
  expect(audits()).toMatchObject([{ outcome: 'unconfirmed', after: { pinned: 5 } }]);
  const all = operate({ workers: 2, responding: [0, 1, 2] });
  await all.commands.applyOverride('till', { do: 'pin', rate: 5 }, 'me');
  expect(all.audits()).toMatchObject([{ outcome: 'done' }]);
});

test('a reset is logged with the states of the client at each upstream', async () => {
  const { commands, audits } = operate({ knownAt: ['till', 'shop'] });
  expect(await commands.reset(CLIENT, 'me')).toMatchObject({ kind: 'done', row: { alsoAt: ['shop'] } });
  const state = (allowance: number) => ({ state: 'backoff', allowance, heldUntil: null });
  expect(audits()).toMatchObject([
    {
      ...{ action: { action: 'reset', client: CLIENT }, outcome: 'done' },
      ...{ before: { till: state(0.5), shop: state(0.5) }, after: { till: state(1), shop: state(1) } },
    },
  ]);
});

test('a reset that a worker may still carry out is logged, and not reported as an unknown client', async () => {
  const { commands, audits } = operate({ workers: 2, responding: [0, 2] });
  expect(await commands.reset(CLIENT, 'me')).toMatchObject({ kind: 'unavailable' });
  expect(audits()).toMatchObject([{ outcome: 'unconfirmed', before: {}, after: undefined }]);
  const unknown = operate({ workers: 2, responding: [0, 1, 2] });
  expect(await unknown.commands.reset(CLIENT, 'me')).toEqual({ kind: 'unknown', nearest: undefined });
  expect(unknown.audits()).toEqual([]);
});
