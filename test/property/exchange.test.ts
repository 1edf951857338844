import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StepResult, RoutePolicy, ExchangeStep } from '../../src/core/exchange/steps.ts';
import { exchange } from '../../src/core/exchange/exchange.ts';
import { makeBackOff, strategyNames } from '../../src/core/backoff/strategies.ts';
import type { AttemptOutcome } from '../../src/core/exchange/attempt-outcome.ts';
import type { Random } from '../../src/core/scalars.ts';
import type { RefusalReason } from '../../src/core/admission/gate-decision.ts';
import type { RequestFacts } from '../../src/core/exchange/request-facts.ts';
import type { ExchangeVerdict } from '../../src/core/exchange/exchange-verdict.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { failure, response, RETRY_ALL } from '../support/core/policy-builders.ts';

const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'];

const request: fc.Arbitrary<RequestFacts> = fc.record({
  method: fc.constantFrom('GET', 'PUT', 'DELETE', 'POST', 'POST', 'PATCH', 'QUERY'),
  keyed: fc.boolean(),
  expectsContinue: fc.boolean(),
  priorAttempts: fc.constantFrom(0, 0, 0, 2),
  keyTtl: fc.constantFrom(undefined, undefined, 500, 5000),
});

const plan: fc.Arbitrary<RoutePolicy> = fc.record({
  timeout: fc.integer({ min: 1, max: 20_000 }),
  perTryTimeout: fc.integer({ min: 1, max: 20_000 }),
  claims: fc.boolean(),
  retry: fc.record({
    retryOn: fc.record({
      statuses: fc.constantFrom(RETRY_ALL.statuses, new Set([503]), new Set<number>()),
      connect: fc.boolean(),
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
    replaysErrors: fc.constantFrom(undefined, true, false),
  }),
});

interface Run {
  readonly steps: ExchangeStep[];
  readonly outcomes: AttemptOutcome[];
  readonly answers: StepResult[];
  readonly verdict: ExchangeVerdict;
}

/** The seed determines the environment, in which failures are far more frequent than in production. */
function run(facts: RequestFacts, given: RoutePolicy, seed: number): Run {
  const world = seededRandom(seed);
  const script = exchange(facts, given, seededRandom(seed + 1), 0);
  const steps: ExchangeStep[] = [];
  const outcomes: AttemptOutcome[] = [];
  const answers: StepResult[] = [];
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

function answerTo(step: ExchangeStep, world: Random, at: number): StepResult {
  const goes = world() < 0.05;
  switch (step.do) {
    case 'body':
      return goes ? { kind: 'gone', at } : { kind: 'body', replayable: world() < 0.8, at };
    case 'join':
      if (goes) return { kind: 'gone', at };
      if (world() < 0.1) return { kind: 'refused', why: 'draining', retryAfterMs: 1000, at };
      return { kind: 'joined', hasResponse: world() < 0.5, at };
    case 'claim':
      if (goes) return { kind: 'gone', at };
      if (world() < 0.1) {
        const why = world() < 0.5 ? 'key_in_use' : 'draining';
        return { kind: 'unclaimed', why, mayHaveTakenEffect: world() < 0.5, at };
      }
      return {
        kind: 'claimed',
        record: world() < 0.2 ? { firstSentAt: at - 400, isAnswered: world() < 0.5 } : undefined,
        at,
      };
    case 'look':
      return {
        kind: 'known',
        record: world() < 0.5 ? { firstSentAt: at - 400, isAnswered: world() < 0.5 } : undefined,
        at,
      };
    case 'admit':
      if (goes) return { kind: 'gone', at };
      return world() < 0.85
        ? { kind: 'admitted', at }
        : { kind: 'refused', why: pick(REFUSALS, world), retryAfterMs: 1, at };
    case 'send':
      return { kind: 'sent', outcome: goes ? failure('aborted', true) : pick(OUTCOMES, world), at };
    case 'grant':
      throw new Error('an exchange sends its own');
    case 'poll':
    case 'reserve':
      return world() < 0.9 ? { kind: 'reserved', at } : { kind: 'denied', why: 'deadline', at };
    case 'wait':
      if (goes) return { kind: 'gone', at };
      return world() < 0.95 ? { kind: 'waited', at } : { kind: 'draining', at };
  }
}

const REFUSALS: readonly RefusalReason[] = ['over_share', 'held', 'blocked', 'queue_timeout', 'queue_full', 'draining'];

const OUTCOMES: readonly AttemptOutcome[] = [
  response(200),
  response(402),
  response(404),
  { ...response(400), isReplayed: true } as AttemptOutcome,
  response(409),
  response(429),
  response(429, { retryAfterMs: 700 }),
  response(429, { lock: true }),
  response(500),
  response(502),
  response(503),
  response(503, { retryAfterMs: 5000 }),
  response(503, { retryAdvice: 'never' }),
  response(524),
  failure('connect', false),
  failure('reset', false),
  failure('reset', true),
  failure('timeout', true),
];

function pick<T>(values: readonly T[], world: Random): T {
  return values[Math.floor(world() * values.length)]!;
}

const wasSent = (outcome: AttemptOutcome) => outcome.kind === 'response' || outcome.sent;

/** Written independently of the code under test. */
function mayHaveActed({ method }: RequestFacts, outcome: AttemptOutcome): boolean {
  if (SAFE.includes(method)) return false;
  return outcome.kind === 'error' ? outcome.sent : [500, 502, 524].includes(outcome.status);
}

function check(property: (facts: RequestFacts, given: RoutePolicy, seed: number) => void, numRuns = 2000): void {
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

test('emits steps in one order, and reserves each retry before it begins', () => {
  check((facts, given, seed) => {
    const { steps } = run(facts, given, seed);
    const claims = given.claims === true && facts.keyed && !SAFE.includes(facts.method);
    const path = [...(facts.expectsContinue ? [] : ['body']), ...(claims ? ['claim'] : []), 'admit'];
    const first = [...path, ...(facts.expectsContinue ? ['body'] : []), 'send'];
    const order = new RegExp(
      `^${first.join('( ')}( reserve wait admit send)*( reserve( wait( admit)?)?)?${')?'.repeat(first.length - 1)}$`,
    );
    const actions = steps.map((step) => step.do);
    expect(actions.filter((step) => step !== 'look').join(' ')).toMatch(order);
  });
});

test('never exceeds the allowed sends, and sends nothing after the client leaves or for the retry of another proxy', () => {
  check((facts, given, seed) => {
    const { steps, answers, outcomes, verdict } = run(facts, given, seed);
    const kinds = answers.map((answer) => answer.kind);
    const sends = steps.filter((step) => step.do === 'send').length;
    expect(sends).toBeLessThanOrEqual(facts.priorAttempts > 0 ? 1 : given.retry.attempts);
    expect(verdict.attempts).toBe(sends);
    expect(kinds.slice(0, -1)).not.toContain('gone');
    const aborted = outcomes.findIndex((outcome) => outcome.kind === 'error' && outcome.reason === 'aborted');
    expect([-1, sends - 1]).toContain(aborted);
    if (kinds.at(-1) === 'gone' || aborted >= 0) expect(verdict.kind).toBe('gone');
  });
});

test('sends a request that must not be repeated only once', () => {
  check((facts, given, seed) => {
    const { outcomes } = run(facts, given, seed);
    const { keyed, method } = facts;
    const isWrite = !SAFE.includes(method) && method !== 'PUT' && method !== 'DELETE';
    for (const outcome of outcomes.slice(0, -1)) {
      if (!wasSent(outcome)) continue;
      expect(outcome.kind === 'response' && outcome.hints.retryAdvice === 'never').toBe(false);
      if (!isWrite || keyed || given.retry.unkeyedWrites === 'always') continue;
      expect(given.retry.unkeyedWrites).toBe('on429');
      expect(outcome).toMatchObject({ kind: 'response', status: 429, hints: { lock: false } });
    }
  });
});

test('stops resending a write that is repeatable only by its key once the key expires', () => {
  check((facts, given, seed) => {
    const { steps, answers, verdict } = run(facts, given, seed);
    const { keyed, method, keyTtl } = facts;
    if (!keyed || keyTtl === undefined || given.retry.unkeyedWrites === 'always') return;
    if (['PUT', 'DELETE', ...SAFE].includes(method)) return;
    let sentAt: number | undefined;
    let at = 0;
    for (const [i, step] of steps.entries()) {
      const answer = answers[i]!;
      if (answer.kind === 'claimed') sentAt = answer.record?.firstSentAt;
      if (answer.kind === 'known' && answer.record !== undefined) {
        sentAt = Math.min(sentAt ?? Infinity, answer.record.firstSentAt);
      }
      if (sentAt !== undefined && (step.do === 'admit' || step.do === 'reserve')) {
        expect(step.deadline).toBeLessThanOrEqual(sentAt + keyTtl);
      }
      const ends = step.do === 'wait' && step.ms > 0 ? at + step.ms : 0;
      if (sentAt !== undefined) expect(ends).toBeLessThanOrEqual(sentAt + keyTtl);
      if (step.do === 'send' && answer.kind === 'sent' && wasSent(answer.outcome)) sentAt ??= at;
      at = answer.at;
    }
    if (answers.some((answer) => answer.kind === 'unclaimed')) {
      expect(['refuse', 'unknown']).toContain(verdict.kind);
      expect(verdict.attempts).toBe(0);
    }
  });
});

test('never resends a failed write to an upstream that would execute it again', () => {
  check((facts, given, seed) => {
    const { outcomes } = run(facts, given, seed);
    if (given.retry.replaysErrors !== false || given.retry.unkeyedWrites !== 'never') return;
    if (facts.method !== 'POST' && facts.method !== 'PATCH') return;
    const again = outcomes.slice(0, -1).map((outcome) => (outcome.kind === 'response' ? outcome.status : 0));
    expect(again).not.toContain(500);
    expect(again).not.toContain(524);
  });
});

test('never sends a body twice if it could not be buffered', () => {
  check((facts, given, seed) => {
    const { outcomes, answers } = run(facts, given, seed);
    const bodies = answers.filter((answer) => answer.kind === 'body');
    expect(bodies.length).toBeLessThanOrEqual(1);
    if (bodies[0]?.replayable === false) expect(outcomes.slice(0, -1).some(wasSent)).toBe(false);
  });
});

test('never reports a write that may have taken effect as refused, failed or throttled', () => {
  check((facts, given, seed) => {
    const { answers, outcomes, verdict } = run(facts, given, seed);
    const records = answers.flatMap((answer) =>
      answer.kind === 'claimed' || answer.kind === 'known' ? [answer.record] : [],
    );
    const turnedAway = answers.find((answer) => answer.kind === 'unclaimed');
    const isOpen =
      records.at(-1)?.isAnswered === false || (turnedAway?.why === 'draining' && turnedAway.mayHaveTakenEffect);
    const before = isOpen || outcomes.slice(0, -1).some((outcome) => mayHaveActed(facts, outcome));
    const last = outcomes.at(-1);
    if (verdict.kind === 'gone') return;
    if (last === undefined) return expect(verdict.kind === 'unknown').toBe(isOpen);
    if (before || mayHaveActed(facts, last)) {
      expect(verdict.kind).not.toBe('refuse');
      expect(verdict.kind).not.toBe('fail');
    } else {
      expect(verdict.kind).not.toBe('unknown');
    }
    if (verdict.kind !== 'forward') return;
    expect(last.kind).toBe('response');
    if (last.kind !== 'response') return;
    if (before) expect([404, 409, 429, 503]).not.toContain(last.status);
    expect(verdict.unknown).toBe((before || mayHaveActed(facts, last)) && last.status >= 500);
  });
});

test('waits no less than the upstream requests, and no longer than a client may be held', () => {
  check((facts, given, seed) => {
    const { steps, outcomes } = run(facts, given, seed);
    const waits = steps.flatMap((step) => (step.do === 'wait' ? [step.ms] : []));
    for (const [i, ms] of waits.entries()) {
      const outcome = outcomes[i]!;
      expect(Number.isFinite(ms) && ms >= 0).toBe(true);
      if (outcome.kind !== 'response' || outcome.hints.retryAfterMs === undefined) continue;
      const requestedWait = outcome.hints.retryAfterMs;
      expect(ms).toBeGreaterThanOrEqual(requestedWait);
      expect(ms).toBeLessThanOrEqual(1.1 * requestedWait);
      expect(requestedWait).toBeLessThanOrEqual(given.retry.maxRetryAfter);
    }
  });
});

test('sets the deadline once, when the body has been read', () => {
  check((facts, given, seed) => {
    const { steps } = run(facts, given, seed);
    if (facts.keyTtl !== undefined) return; // the lifetime of the key limits it too
    const deadlines = new Set(steps.flatMap((step) => ('deadline' in step ? [step.deadline] : [])));
    expect(deadlines.size).toBeLessThanOrEqual(facts.expectsContinue ? 2 : 1);
    for (const step of steps) {
      if (step.do !== 'send') continue;
      expect(step.timeout).toBeGreaterThanOrEqual(1);
      expect(step.timeout).toBeLessThanOrEqual(Math.max(1, given.perTryTimeout));
    }
  });
});
