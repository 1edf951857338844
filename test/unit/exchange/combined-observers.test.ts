import { expect, test } from 'vitest';
import {
  combineObservers,
  type ExchangeObserver,
  type ObservedExchange,
  type TraceStep,
} from '../../../src/core/exchange/exchange-observer.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { response } from '../../support/core/policy-builders.ts';

test('combined observers get every call with its arguments, in the order in which they are listed', () => {
  const calls: unknown[][] = [];
  const observer = (name: string): ExchangeObserver => ({
    onStart: (...args) => calls.push([name, 'start', ...args]),
    onSend: (...args) => calls.push([name, 'send', ...args]),
    onOutcome: (...args) => calls.push([name, 'outcome', ...args]),
    onStep: (...args) => calls.push([name, 'step', ...args]),
    onEnd: (...args) => calls.push([name, 'end', ...args]),
    onRefused: (...args) => calls.push([name, 'refused', ...args]),
  });
  const exchange: ObservedExchange = {
    describe: () => expect.fail('not called here'),
    lastAttempt: () => expect.fail('not called here'),
    steps: undefined,
    trace: undefined,
  };
  const outcome = response(200);
  const step: TraceStep = { what: 'draining', at: 7 };
  const record = { id: 'r-1' } as RequestRecord; // only passed on
  const combined = combineObservers([observer('first'), observer('second')]);

  combined.onStart(exchange);
  combined.onSend(exchange, 3);
  combined.onOutcome(exchange, 3, outcome, 5);
  combined.onStep(exchange, step);
  combined.onEnd(exchange, record);
  combined.onRefused(record, 'traceparent');

  const expected = [
    ['start', exchange],
    ['send', exchange, 3],
    ['outcome', exchange, 3, outcome, 5],
    ['step', exchange, step],
    ['end', exchange, record],
    ['refused', record, 'traceparent'],
  ];
  expect(calls).toEqual(
    expected.flatMap((call) => [
      ['first', ...call],
      ['second', ...call],
    ]),
  );
});
