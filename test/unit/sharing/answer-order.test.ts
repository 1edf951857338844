/** The responses of several replicas, reported late and out of order, teach a limiter as those of one process. */
import { expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import { AnswerEvents, RESPONDED, SENT } from '../../../src/sharing/replicas/answer-events.ts';
import { AnswerOrder } from '../../../src/sharing/replicas/answer-order.ts';

const REPORT_DELAY = 120;
const SETTINGS = { initialRate: undefined, minRate: 1, maxRate: Number.POSITIVE_INFINITY, cooldown: 1000 };

/** When it is sent and answered; without an answer so far if that is undefined. */
type Sent = readonly [sentAt: number, at?: number];

interface Answer {
  readonly at: number;
  readonly latency: number;
  readonly unanswered: number;
  readonly isAbandoned?: boolean;
}

/** A meter that records what is learned from latency. */
function startOrder(learnsFromLatency = true, limit = Number.POSITIVE_INFINITY) {
  const learned: Answer[] = [];
  const onAnswer = (latency: number, unanswered: number, at: number): boolean => {
    learned.push({ at, latency, unanswered });
    return latency > 1000;
  };
  const onTimeout = (
    latency: number,
    unanswered: number,
    at: number,
    _isRejecting: boolean,
    isAbandoned = false,
  ): void => {
    learned.push({ at, latency: -latency, unanswered, ...(isAbandoned ? { isAbandoned } : {}) });
  };
  const rules = {
    ...RATE_RULES,
    makeLatencyLimiter: () => ({ limit, throughput: limit, onAnswer, onTimeout, advance: () => undefined }),
  };
  const settings = { ...SETTINGS, learnsFromLatency };
  const meter = new LocalMeter(settings, () => 0.5, rules);
  const order = new AnswerOrder();
  const report = (now: number, requests: readonly Sent[]) => {
    const events: [at: number, value: number][] = [];
    for (const [sentAt, at] of requests) {
      events.push([sentAt, SENT]);
      if (at !== undefined) events.push([at, at - sentAt], [at, RESPONDED]);
    }
    const reported = new AnswerEvents();
    for (const [at, value] of events.toSorted(([a], [b]) => a - b)) {
      reported.add(at, value);
      if (value === SENT) meter.onSent(at);
      if (value === RESPONDED) meter.onResponse();
    }
    return order.learn(reported, meter, REPORT_DELAY, now);
  };
  return { learned, meter, order, report, settings };
}

test('answers are learned from in the order of their times, with the requests that waited then', () => {
  const { learned, report } = startOrder();
  report(100, [
    [0, 60],
    [10, 90],
  ]);
  report(110, [[5, 50], [20, 80], [30]]);
  expect(learned).toEqual([]); // another replica may still report an earlier one
  report(175, []);
  expect(learned).toEqual([{ at: 50, latency: 45, unanswered: 5 }]);
  report(300, []);
  expect(learned.slice(1)).toEqual([
    { at: 60, latency: 60, unanswered: 4 },
    { at: 80, latency: 60, unanswered: 3 },
    { at: 90, latency: 80, unanswered: 2 },
  ]);
});

test('an answer that is reported later than usual counts at the time of the last one', () => {
  const { learned, report } = startOrder();
  report(100, [[0, 90]]);
  report(300, []);
  report(310, [[20, 70]]);
  expect(learned).toEqual([
    { at: 90, latency: 90, unanswered: 1 },
    { at: 90, latency: 50, unanswered: 1 },
  ]);
});

test('under a limit on requests in flight, answers are learned from sooner, because they are reported at once', () => {
  const { learned, report } = startOrder(true, 8);
  report(100, [[0, 90]]);
  report(220, []); // before the first answer there is no limit
  expect(learned).toHaveLength(1);
  report(300, [[220, 290]]);
  report(315, []);
  expect(learned).toHaveLength(2);
});

test('failed requests are learned from in the same order, as such', () => {
  const { learned, meter, order, report } = startOrder();
  report(100, [[0, 20], [5, 60], [10]]);
  const reported = new AnswerEvents();
  reported.addFailure(40, 0);
  reported.addFailure(50, 45);
  order.learn(reported, meter, REPORT_DELAY, 110);
  report(300, []);
  expect(learned).toEqual([
    { at: 20, latency: 20, unanswered: 3 },
    { at: 40, latency: -0, unanswered: 2 },
    { at: 50, latency: -45, unanswered: 2 },
    { at: 60, latency: 55, unanswered: 2 },
  ]);
});

test('abandoned requests are learned from in the same order, as such', () => {
  const { learned, meter, order, report } = startOrder();
  report(100, [[0, 20], [5, 60], [10]]);
  const reported = new AnswerEvents();
  reported.addFailure(50, 45.25, true);
  order.learn(reported, meter, REPORT_DELAY, 110);
  report(300, []);
  expect(learned).toEqual([
    { at: 20, latency: 20, unanswered: 3 },
    { at: 50, latency: -45.25, unanswered: 2, isAbandoned: true },
    { at: 60, latency: 55, unanswered: 2 },
  ]);
});

test('the requests of a replica that has gone no longer count', () => {
  const { learned, meter, report } = startOrder();
  report(100, [[0], [1], [2]]);
  meter.adaptiveRate.inFlightLimiter.adjustCount(-2, -2);
  report(300, []);
  report(310, [[301, 305]]);
  report(600, []);
  expect(learned).toEqual([{ at: 305, latency: 4, unanswered: 2 }]);
});

test('a queue that the answers show is reported as a decrease', () => {
  const { report } = startOrder();
  expect(report(2000, [[0, 1500]])).toMatchObject({ cause: 'latency', from: Number.POSITIVE_INFINITY });
});

test('many answers at a time are learned from early, so that the stored limit stays small', () => {
  const { learned, report } = startOrder();
  const requests = Array.from({ length: 1000 }, (_, i): Sent => [i / 100, 50 + i / 100]);
  report(100, requests);
  expect(learned.length).toBeGreaterThan(0);
  report(300, []);
  expect(learned).toHaveLength(1000);
});

test('nothing is learned while the setting is off, nor from answers of that time', () => {
  const { learned, report } = startOrder(false);
  report(100, [[0, 90]]);
  report(300, []);
  expect(learned).toEqual([]);
});
