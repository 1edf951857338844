import { expect, test } from 'vitest';
import type { EndpointFailure } from '../../../src/core/events/gate-views.ts';
import type { UpstreamHealthEvent } from '../../../src/core/events/upstream-health-events.ts';
import { UpstreamHealth } from '../../../src/process/health/upstream-health.ts';

const REFUSED: EndpointFailure = { at: 0, reason: 'connect', code: 'ECONNREFUSED' };

function begin(processes = 1) {
  let now = 0;
  let sent = 0;
  let failed = 0;
  const events: string[] = [];
  const health = new UpstreamHealth((event) => {
    const { type, ...rest } = event as UpstreamHealthEvent;
    const figure = 'failedShare' in rest ? rest.failedShare.toFixed(2) : rest.after;
    events.push(`${now} ${type} ${rest.upstream} ${figure} ${rest.failure?.code}`);
  });
  /** A second with this many attempts, some of which fail, divided among the processes. */
  const second = (more: number, failures: number, seconds = 1): void => {
    for (let i = 0; i < seconds; i += 1) {
      now += 1000;
      sent += more;
      failed += failures;
      const share = { name: 'pay', sent: sent / processes, failed: failed / processes, throttled: 0 };
      const rates = [{ ...share, failure: failed > 0 ? REFUSED : undefined, rate: undefined, ceiling: undefined }];
      health.record(new Map(Array.from({ length: processes }, (_, process) => [process, rates])), now);
    }
  };
  return { events, second, health };
}

test.each([1, 4])(
  'reports once for %d processes that every attempt fails, and that the upstream has recovered',
  (processes) => {
    const { events, second } = begin(processes);
    second(6, 0, 60);
    second(6, 6, 30);
    second(6, 0, 60);
    expect(events).toEqual([
      '61000 upstream-failing pay 1.00 ECONNREFUSED',
      '99000 upstream-recovered pay 38000 ECONNREFUSED',
    ]);
  },
);

test('reports after a second an upstream that fails from the start', () => {
  const { events, second } = begin();
  second(6, 6);
  expect(events).toEqual(['1000 upstream-failing pay 1.00 ECONNREFUSED']);
});

test('reports a recovery soon after a block, during which only probes are sent', () => {
  const { events, second } = begin();
  second(6, 0, 60);
  second(12, 12);
  for (let i = 0; i < 4; i += 1) {
    second(0, 0, 4);
    second(1, 1);
  }
  second(6, 0, 5);
  expect(events).toEqual([
    '61000 upstream-failing pay 1.00 ECONNREFUSED',
    '83000 upstream-recovered pay 22000 ECONNREFUSED',
  ]);
});

test('reports an upstream if more than half of its attempts fail, and no recovery while a third fail', () => {
  const { events, second } = begin();
  second(6, 0, 60);
  second(6, 4, 60);
  expect(events).toEqual(['68000 upstream-failing pay 0.53 ECONNREFUSED']);
  second(6, 2, 60);
  expect(events).toHaveLength(1);
  second(6, 1, 60);
  expect(events[1]).toMatch(/^18\d000 upstream-recovered/);
});

test('reports no failure at a third or after few attempts, and no recovery of an idle upstream', () => {
  const { events, second } = begin();
  second(6, 2, 60);
  expect(events).toEqual([]);
  const rare = begin();
  rare.second(4, 4);
  rare.second(0, 0, 600);
  expect(rare.events).toEqual([]);
  const idle = begin();
  idle.second(6, 6);
  idle.second(0, 0, 600);
  expect(idle.events).toHaveLength(1);
});

test('classifies an upstream with one request in ten seconds by its last attempts', () => {
  const { events, second } = begin();
  const request = (failures: number): void => {
    second(1, failures);
    second(0, 0, 9);
  };
  for (let i = 0; i < 5; i += 1) request(0);
  for (let i = 0; i < 5; i += 1) request(1);
  for (let i = 0; i < 5; i += 1) request(0);
  expect(events.map((event) => event.split(' ').slice(0, 2).join(' '))).toEqual([
    '71000 upstream-failing',
    '121000 upstream-recovered',
  ]);
});

test('counts a new process from its start, and drops an upstream that was removed', () => {
  const events: string[] = [];
  const health = new UpstreamHealth(({ type }) => events.push(type));
  const rates = (name: string, sent: number, failed: number) => [
    { name, sent, failed, throttled: 0, failure: undefined, rate: undefined, ceiling: undefined },
  ];
  health.record(new Map([[1, rates('pay', 1000, 0)]]), 0);
  health.record(
    new Map([
      [1, rates('pay', 1000, 0)],
      [2, rates('pay', 6, 6)],
    ]),
    11_000,
  );
  expect(events).toHaveLength(1);
  health.record(new Map([[2, rates('ledger', 0, 0)]]), 12_000);
  health.record(new Map([[2, rates('pay', 12, 6)]]), 13_000);
  health.record(new Map([[2, rates('pay', 20, 6)]]), 30_000);
  expect(events).toEqual(['upstream-failing', 'upstream-failing', 'upstream-recovered']);
});
