import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Answer, Plan, Step } from '../../src/exchange.ts';
import { exchange } from '../../src/exchange.ts';
import { makeBackOff, strategyNames } from '../../src/policy/backoff.ts';
import type { Outcome, Random, Refusal, RequestFacts, Verdict } from '../../src/policy/types.ts';
import { seededRandom } from '../../src/sim/seeded-random.ts';
import { failure, response, RETRY_ALL } from '../support/policy.ts';

const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'];

const request: fc.Arbitrary<RequestFacts> = fc.record({
  method: fc.constantFrom('GET', 'PUT', 'DELETE', 'POST', 'POST', 'PATCH', 'QUERY'),
  keyed: fc.boolean(),
  expectsContinue: fc.boolean(),
  priorAttempts: fc.constantFrom(0, 0, 0, 2),
});

const plan: fc.Arbitrary<Plan> = fc.record({
  timeout: fc.integer({ min: 1, max: 20_000 }),
  perTryTimeout: fc.integer({ min: 1, max: 20_000 }),
  retry: fc.record({
    retryOn: fc.record({
      statuses: fc.constantFrom(RETRY_ALL.statuses, new Set([503]), new Set<number>()),
      connectFailure: fc.boolean(),
      reset: fc.boolean(),
      timeout: fc.boolean(),
      lock: fc.boolean(),
    }),
    attempts: fc.integer({ min: 1, max: 6 }),
    backOff: fc.constantFrom(...strategyNames).map((strategy) => makeBackOff({ strategy })),
    backOffFor: fc.constantFrom({}, { status_429: makeBackOff({ strategy: 'full-jitter' }) }),
    maxRetryAfter: fc.constantFrom(0, 1000, 60_000),
    unkeyedWrites: fc.constantFrom('never', 'on429', 'always'),
    onClientGone: fc.constantFrom('cancel', 'finish'),
  }),
});

interface Run {
  readonly steps: Step[];
  readonly outcomes: Outcome[];
  readonly answers: Answer[];
  readonly verdict: Verdict;
}

/** What the world does is chosen by a seed: failures are far more likely than in any real one. */
function run(facts: RequestFacts, given: Plan, seed: number): Run {
  const world = seededRandom(seed);
  const script = exchange(facts, given, seededRandom(seed + 1), 0);
  const steps: Step[] = [];
  const outcomes: Outcome[] = [];
  const answers: Answer[] = [];
  let now = 0;
  let result = script.next();
  while (result.done !== true) {
    if (steps.length > 1000) throw new Error('the script does not end');
    const step = result.value;
    steps.push(step);
    now += step.do === 'wait' ? step.ms : step.do === 'reserve' ? 0 : 100 * world();
    const answer = answerTo(step, world, now);
    answers.push(answer);
    if (answer.kind === 'sent') outcomes.push(answer.outcome);
    result = script.next(answer);
  }
  return { steps, outcomes, answers, verdict: result.value };
}

function answerTo(step: Step, world: Random, at: number): Answer {
  const goes = world() < 0.05;
  switch (step.do) {
    case 'body':
      return goes ? { kind: 'gone', at } : { kind: 'body', replayable: world() < 0.8, at };
    case 'admit':
      if (goes) return { kind: 'gone', at };
      return world() < 0.85
        ? { kind: 'admitted', at }
        : { kind: 'refused', why: pick(REFUSALS, world), retryAfter: 1, at };
    case 'send':
      return { kind: 'sent', outcome: goes ? failure('aborted', true) : pick(OUTCOMES, world), at };
    case 'reserve':
      return world() < 0.9 ? { kind: 'reserved', at } : { kind: 'denied', why: 'deadline', at };
    case 'wait':
      if (goes) return { kind: 'gone', at };
      return world() < 0.95 ? { kind: 'waited', at } : { kind: 'draining', at };
  }
}

const REFUSALS: readonly Refusal[] = ['over_share', 'held', 'blocked', 'queue_timeout', 'queue_full', 'draining'];

const OUTCOMES: readonly Outcome[] = [
  response(200),
  response(404),
  response(409),
  response(429),
  response(429, { retryAfter: 700 }),
  response(429, { lock: true }),
  response(500),
  response(502),
  response(503),
  response(503, { retryAfter: 5000 }),
  response(503, { verdict: 'never' }),
  response(524),
  failure('connect', false),
  failure('reset', false),
  failure('reset', true),
  failure('timeout', true),
];

function pick<T>(values: readonly T[], world: Random): T {
  return values[Math.floor(world() * values.length)]!;
}

const wasSent = (outcome: Outcome) => outcome.kind === 'response' || outcome.sent;

/** Written anew, not taken from the code under test. */
function mayHaveActed({ method }: RequestFacts, outcome: Outcome): boolean {
  if (SAFE.includes(method)) return false;
  return outcome.kind === 'error' ? outcome.sent : [500, 502, 524].includes(outcome.status);
}

function check(property: (facts: RequestFacts, given: Plan, seed: number) => void, numRuns = 2000): void {
  fc.assert(
    fc.property(request, plan, fc.integer({ min: 0, max: 2 ** 31 }), (facts, given, seed) => {
      property(facts, given, seed);
    }),
    { numRuns },
  );
}

test('equal seeds give equal runs', () => {
  check((facts, given, seed) => {
    expect(run(facts, given, seed)).toEqual(run(facts, given, seed));
  }, 500);
});

test('the steps come in one order, and each retry is reserved before it is begun', () => {
  check((facts, given, seed) => {
    const { steps } = run(facts, given, seed);
    const first = facts.expectsContinue ? 'admit( body( send' : 'body( admit( send';
    const order = new RegExp(`^${first}( reserve wait admit send)*( reserve( wait( admit)?)?)?)?)?$`);
    expect(steps.map((step) => step.do).join(' ')).toMatch(order);
  });
});

test('never more sends than allowed, and never one when the client has gone or another proxy retries', () => {
  check((facts, given, seed) => {
    const { steps, answers, outcomes, verdict } = run(facts, given, seed);
    const told = answers.map((answer) => answer.kind);
    const sends = steps.filter((step) => step.do === 'send').length;
    expect(sends).toBeLessThanOrEqual(facts.priorAttempts > 0 ? 1 : given.retry.attempts);
    expect(verdict.attempts).toBe(sends);
    expect(told.slice(0, -1)).not.toContain('gone');
    const aborted = outcomes.findIndex((outcome) => outcome.kind === 'error' && outcome.reason === 'aborted');
    expect([-1, sends - 1]).toContain(aborted);
    if (told.at(-1) === 'gone' || aborted >= 0) expect(verdict.kind).toBe('gone');
  });
});

test('what must not be sent twice is sent once', () => {
  check((facts, given, seed) => {
    const { outcomes } = run(facts, given, seed);
    const { keyed, method } = facts;
    const isWrite = !SAFE.includes(method) && method !== 'PUT' && method !== 'DELETE';
    for (const outcome of outcomes.slice(0, -1)) {
      if (!wasSent(outcome)) continue;
      expect(outcome.kind === 'response' && outcome.hints.verdict === 'never').toBe(false);
      if (!isWrite || keyed || given.retry.unkeyedWrites === 'always') continue;
      expect(given.retry.unkeyedWrites).toBe('on429');
      expect(outcome).toMatchObject({ kind: 'response', status: 429, hints: { lock: false } });
    }
  });
});

test('a body that could not be kept is never sent twice', () => {
  check((facts, given, seed) => {
    const { outcomes, answers } = run(facts, given, seed);
    const bodies = answers.filter((answer) => answer.kind === 'body');
    expect(bodies.length).toBeLessThanOrEqual(1);
    if (bodies[0]?.replayable === false) expect(outcomes.slice(0, -1).some(wasSent)).toBe(false);
  });
});

test('a write that may have happened is never told as refused, failed or throttled', () => {
  check((facts, given, seed) => {
    const { outcomes, verdict } = run(facts, given, seed);
    const before = outcomes.slice(0, -1).some((outcome) => mayHaveActed(facts, outcome));
    const last = outcomes.at(-1);
    if (verdict.kind === 'gone' || last === undefined) return;
    if (before || mayHaveActed(facts, last)) {
      expect(verdict.kind).not.toBe('refuse');
      expect(verdict.kind).not.toBe('fail');
    } else {
      expect(verdict.kind).not.toBe('unknown');
    }
    if (verdict.kind !== 'forward') return;
    expect(last.kind).toBe('response');
    if (last.kind !== 'response') return;
    if (before) expect(facts.keyed ? [409, 429, 503] : [429, 503]).not.toContain(last.status);
    expect(verdict.unknown).toBe((before || mayHaveActed(facts, last)) && last.status >= 500);
  });
});

test('no wait is shorter than the upstream asked for, none longer than a client may be held for it', () => {
  check((facts, given, seed) => {
    const { steps, outcomes } = run(facts, given, seed);
    const waits = steps.flatMap((step) => (step.do === 'wait' ? [step.ms] : []));
    for (const [i, ms] of waits.entries()) {
      const outcome = outcomes[i]!;
      expect(Number.isFinite(ms) && ms >= 0).toBe(true);
      if (outcome.kind !== 'response' || outcome.hints.retryAfter === undefined) continue;
      const asked = outcome.hints.retryAfter;
      expect(ms).toBeGreaterThanOrEqual(asked);
      expect(ms).toBeLessThanOrEqual(1.1 * asked);
      expect(asked).toBeLessThanOrEqual(given.retry.maxRetryAfter);
    }
  });
});

test('the deadline is set once, when the body has been read', () => {
  check((facts, given, seed) => {
    const { steps } = run(facts, given, seed);
    const deadlines = new Set(steps.flatMap((step) => ('deadline' in step ? [step.deadline] : [])));
    expect(deadlines.size).toBeLessThanOrEqual(facts.expectsContinue ? 2 : 1);
    for (const step of steps) {
      if (step.do !== 'send') continue;
      expect(step.timeout).toBeGreaterThanOrEqual(1);
      expect(step.timeout).toBeLessThanOrEqual(Math.max(1, given.perTryTimeout));
    }
  });
});
