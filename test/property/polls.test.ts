import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StepResult, RoutePolicy, ExchangeStep } from '../../src/core/exchange/steps.ts';
import { runExchange } from '../../src/core/exchange/polling-exchange.ts';
import { makeBackOff, strategyNames } from '../../src/core/backoff/strategies.ts';
import { MIN_POLL_DELAY } from '../../src/core/polling/choose-poll.ts';
import { PollRegistry } from '../../src/core/polling/poll-registry.ts';
import { hintedDelay } from '../../src/core/retry/hinted-delay.ts';
import type { Millis, Random } from '../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../src/core/exchange/exchange-verdict.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import {
  failure,
  fixedDelay,
  routePolicy,
  pollPolicy,
  requestFacts,
  response,
  retryPolicy,
} from '../support/core/policy-builders.ts';

interface Polled {
  readonly wait: Millis;
  readonly plan: RoutePolicy;
  readonly seed: number;
  /** Delays that the backoff has drawn, in order. */
  readonly drawn: Millis[];
}

const polled: fc.Arbitrary<Polled> = fc
  .record({
    wait: fc.integer({ min: 1, max: 120 }).map((seconds) => 1000 * seconds),
    strategy: fc.constantFrom(...strategyNames),
    baseInterval: fc.integer({ min: 1, max: 4000 }),
    maxWait: fc.integer({ min: 1000, max: 90_000 }),
    maxPolls: fc.integer({ min: 2, max: 60 }),
    timeout: fc.integer({ min: 100, max: 20_000 }),
    attempts: fc.integer({ min: 1, max: 3 }),
    seed: fc.integer({ min: 0, max: 2 ** 31 }),
  })
  .map(({ wait, strategy, baseInterval, maxWait, maxPolls, timeout, attempts, seed }) => {
    const backOff = makeBackOff({ strategy, baseInterval });
    const drawn: Millis[] = [];
    const next = (n: number, memory: number, random: Random) => {
      const step = backOff.next(n, memory, random);
      if (step !== undefined) drawn.push(step.delay);
      return step;
    };
    const poll = pollPolicy({ backOff: { name: strategy, next }, maxWait, maxPolls });
    const retry = retryPolicy({ attempts, backOff: fixedDelay(50) });
    return { wait, plan: routePolicy({ timeout, perTryTimeout: timeout, retry, poll }), seed, drawn };
  });

interface Event {
  readonly step: ExchangeStep;
  readonly answer: StepResult;
  /** Times of the request and of the response. */
  readonly asked: Millis;
  readonly at: Millis;
  /** The delay that the backoff drew last. */
  readonly drawn: Millis;
}

function run({ wait, plan, seed, drawn }: Polled): { events: Event[]; verdict: ExchangeVerdict } {
  const world = seededRandom(seed);
  const script = runExchange(requestFacts({ preferredWait: wait }), plan, seededRandom(seed + 1), 0);
  const events: Event[] = [];
  let now = 0;
  let result = script.next();
  while (result.done !== true) {
    if (events.length > 5000) throw new Error('the script does not end');
    const step = result.value;
    const asked = now;
    const answer = answerTo(step, world, now);
    now = answer.at;
    events.push({ step, answer, asked, at: now, drawn: drawn.at(-1) ?? 0 });
    result = script.next(answer);
  }
  return { events, verdict: result.value };
}

function answerTo(step: ExchangeStep, world: Random, now: Millis): StepResult {
  switch (step.do) {
    case 'body':
      return { kind: 'body', replayable: true, at: now };
    case 'join':
      return { kind: 'joined', hasResponse: false, at: now };
    case 'admit':
      if (world() < 0.03) return { kind: 'refused', why: 'over_share', retryAfterMs: 5000 * world(), at: now };
      return { kind: 'admitted', at: now + (world() < 0.2 ? 400 * world() : 0) };
    case 'send':
      return { kind: 'sent', outcome: outcome(world), at: now + 100 * world() };
    case 'reserve':
    case 'poll':
      return world() < 0.98 ? { kind: 'reserved', at: now } : { kind: 'denied', why: 'deadline', at: now };
    case 'wait':
      if (world() < 0.01) return { kind: 'gone', at: now + step.ms * world() };
      if (world() < 0.01) return { kind: 'draining', at: now + step.ms * world() };
      return { kind: 'waited', at: now + step.ms };
    case 'claim':
    case 'look':
    case 'grant':
      throw new Error('an exchange sends its own');
  }
}

function outcome(world: Random): AttemptOutcome {
  const chance = world();
  if (chance < 0.85) return response(202);
  if (chance < 0.92) return response(202, { retryAfterMs: 20_000 * world() });
  if (chance < 0.95) return response(503);
  if (chance < 0.97) return failure('reset', true);
  return response(chance < 0.99 ? 200 : 404);
}

const hold = (property: (polled: Polled) => void) => fc.assert(fc.property(polled, property), { numRuns: 2000 });

/** The poll that the wait belongs to. */
function pollBefore(events: readonly Event[], index: number) {
  const { step } = events[index - 1] ?? {};
  return step?.do === 'poll' ? step : undefined;
}

test('begins no poll after the end of the wait, and no more polls than allowed', () => {
  hold((each) => {
    const { events, verdict } = run(each);
    const end = Math.min(each.wait, each.plan.poll?.maxWait ?? 0);
    const begun = events.filter((_, i) => pollBefore(events, i) !== undefined);
    expect(Math.max(0, ...begun.map(({ at }) => at))).toBeLessThan(end + 1e-6);
    const { maxPolls = 0 } = each.plan.poll ?? {};
    expect(verdict.polls ?? 1).toBeLessThanOrEqual(maxPolls);
    expect(events.filter(({ step }) => step.do === 'poll').length).toBeLessThanOrEqual(maxPolls + end / 1000);
  });
});

test('polls no sooner than the backoff, except for the last poll, and never sooner than the upstream requests', () => {
  hold((each) => {
    const { events } = run(each);
    for (const [i, { asked, at, answer, drawn }] of events.entries()) {
      const step = pollBefore(events, i);
      const before = events[i - 2]?.answer;
      if (step?.after !== 'not_ready' || answer.kind !== 'waited' || before?.kind !== 'sent') continue;
      const hinted = before.outcome.kind === 'response' ? (hintedDelay(before.outcome.hints) ?? 0) : 0;
      const own = Math.max(MIN_POLL_DELAY, drawn);
      const least = step.poll.source === 'end' ? Math.max(MIN_POLL_DELAY, own / 4) : own;
      expect(at - asked + 1e-6).toBeGreaterThanOrEqual(Math.max(hinted, least));
    }
  });
});

test('ends once: it forwards the last response, and takes no further step', () => {
  hold((each) => {
    const { events, verdict } = run(each);
    const sent = events.flatMap(({ answer }) => (answer.kind === 'sent' ? [answer.outcome] : []));
    expect(verdict.attempts).toBe(sent.length);
    const last = sent.at(-1);
    if (verdict.kind !== 'forward') return;
    expect(last?.kind).toBe('response');
    // If no wait followed, the response is still in hand.
    const at = events.findLastIndex(({ answer }) => answer.kind === 'sent');
    expect(events.slice(at + 1).filter(({ step }) => step.do === 'wait')).toEqual([]);
    expect(verdict.notReady === true).toBe(last?.kind === 'response' && last.status === 202);
  });
});

test('gives each poll as many attempts as a request of its own', () => {
  hold((each) => {
    const { events } = run(each);
    const numbers = events.flatMap(({ step }) => (step.do === 'send' ? [step.attempt] : []));
    for (const [i, number] of numbers.entries()) {
      expect([1, (numbers[i - 1] ?? 0) + 1]).toContain(number);
      expect(number).toBeLessThanOrEqual(each.plan.retry.attempts);
    }
  });
});

test('returns the delay of the backoff to each client that polls an unchanged resource, however many others poll', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 1, max: 3 })), { maxLength: 200 }),
      (asks) => {
        const backOff = makeBackOff({ strategy: 'exponential', baseInterval: 1, multiplier: 2, maxInterval: 2 ** 40 });
        const polls = new PollRegistry(9);
        const counts = new Map<number, number>();
        for (const [now, [client, times]] of asks.entries()) {
          const count = (counts.get(client) ?? 0) + times;
          counts.set(client, count);
          const delay = polls.nextRetryAfter({ key: `${client}`, answer: '', polls: times, backOff }, now, () => 0);
          expect(delay).toBe(Math.min(2 ** 40, 2 ** (count - 1)));
        }
      },
    ),
  );
});
