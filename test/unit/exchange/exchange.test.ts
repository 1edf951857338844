import { describe, expect, test } from 'vitest';
import type { StepResult, RoutePolicy, ExchangeStep } from '../../../src/core/exchange/steps.ts';
import { exchange } from '../../../src/core/exchange/exchange.ts';
import { LatencyEstimates } from '../../../src/core/retry/latency-estimates.ts';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RefusalReason } from '../../../src/core/admission/gate-decision.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { RetryOutcome } from '../../../src/core/retry/retry-policy.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import {
  failure,
  fixedDelay,
  routePolicy,
  requestFacts,
  response,
  retryPolicy,
} from '../../support/core/policy-builders.ts';

const read = (at: Millis, replayable = true): StepResult => ({ kind: 'body', replayable, at });
const admitted = (at: Millis): StepResult => ({ kind: 'admitted', at });
const refused = (why: RefusalReason, at: Millis): StepResult => ({ kind: 'refused', why, retryAfterMs: 3000, at });
const sent = (outcome: AttemptOutcome, at: Millis): StepResult => ({ kind: 'sent', outcome, at });
const reserved = (at: Millis): StepResult => ({ kind: 'reserved', at });
const denied = (why: RetryOutcome, at: Millis): StepResult => ({ kind: 'denied', why, at });
const waited = (at: Millis): StepResult => ({ kind: 'waited', at });
const gone = (at: Millis): StepResult => ({ kind: 'gone', at });
const draining = (at: Millis): StepResult => ({ kind: 'draining', at });

interface Played {
  readonly steps: readonly ExchangeStep[];
  /** Undefined while the script waits for the next result. */
  readonly verdict: ExchangeVerdict | undefined;
}

/** Answers the steps of the script with these results in order. The state of the write stays as claimed, unless a result sets it. */
function play(
  answers: readonly StepResult[],
  request: Partial<RequestFacts> = {},
  plan: Partial<RoutePolicy> = {},
  random: Random = () => 0,
): Played {
  const script = exchange(requestFacts(request), routePolicy(plan), random, 0);
  const steps: ExchangeStep[] = [];
  let result = script.next();
  let record: KeyRecord | undefined;
  let at = 0;
  const skipLook = (): void => {
    while (result.done !== true && result.value.do === 'look') result = script.next({ kind: 'known', record, at });
  };
  for (const answer of answers) {
    if (answer.kind === 'claimed') ({ record } = answer);
    if (answer.kind !== 'known') skipLook();
    if (result.done === true) throw new Error(`over before it could be given '${answer.kind}'`);
    steps.push(result.value);
    ({ at } = answer);
    result = script.next(answer);
  }
  skipLook();
  if (result.done === true) return { steps, verdict: result.value };
  return { steps: [...steps, result.value], verdict: undefined };
}

function does({ steps }: Played): string {
  return steps.map((step) => step.do).join(' ');
}

/** The steps up to the head of the first response. */
const upTo = (outcome: AttemptOutcome): StepResult[] => [read(0), admitted(0), sent(outcome, 10)];
/** The same steps, and those up to the second admission. */
const retryAfter = (outcome: AttemptOutcome): StepResult[] => [...upTo(outcome), reserved(10), waited(110)];

const EXHAUSTED = { remaining: 0, limit: 100, resetIn: 6000, window: undefined };
const KEYED = { method: 'POST', keyed: true } as const;

describe('the order of steps', () => {
  test('is body, admission and send; then the response is forwarded', () => {
    const played = play(upTo(response(200)));
    expect(does(played)).toBe('body admit send');
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined });
  });

  test('has admission before the body with Expect, so that a refusal costs no upload', () => {
    const expects = { expectsContinue: true };
    expect(does(play([admitted(0), read(50), sent(response(200), 60)], expects))).toBe('admit body send');
    expect(does(play([refused('over_share', 0)], expects))).toBe('admit');
  });

  test('has a reserved retry while the response is in hand, then a sleep and another admission', () => {
    const played = play([...retryAfter(response(503)), admitted(110), sent(response(200), 120)]);
    expect(does(played)).toBe('body admit send reserve wait admit send');
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 2, retryOutcome: 'success' });
  });

  test('has the body only once with Expect', () => {
    const played = play([admitted(0), read(0), sent(response(503), 10), reserved(10), waited(110), admitted(110)], {
      expectsContinue: true,
    });
    expect(does(played)).toBe('admit body send reserve wait admit send');
  });

  test('has attempts counted from 1, and the memory of the backoff for each delay', () => {
    let memory = 40;
    const backOff = {
      name: 'spy',
      next: (n: number, before: number) => ({ delay: 1000 * n + before, memory: (memory += 1) }),
    };
    const played = play(
      [
        ...retryAfter(response(503)),
        admitted(110),
        sent(response(503), 120),
        reserved(120),
        waited(130),
        admitted(130),
      ],
      {},
      { retry: retryPolicy({ backOff }) },
    );
    expect(played.steps.filter((step) => step.do === 'send').map((step) => step.attempt)).toEqual([1, 2, 3]);
    expect(played.steps.filter((step) => step.do === 'wait').map((step) => step.ms)).toEqual([0, 1041]);
  });
});

describe('the deadline', () => {
  const plan = { timeout: 1000, perTryTimeout: 400 };
  const deadlines = ({ steps }: Played) => steps.flatMap((step) => ('deadline' in step ? [step.deadline] : []));
  const timeouts = ({ steps }: Played) => steps.flatMap((step) => (step.do === 'send' ? [step.timeout] : []));

  test('is counted from the end of the upload', () => {
    const played = play([read(700), admitted(700), sent(response(503), 800), reserved(800), waited(900)], {}, plan);
    expect(deadlines(played)).toEqual([1700, 1700, 1700]);
  });

  test('is counted from the arrival with Expect, and extended by the time of the upload', () => {
    const answers = [admitted(300), read(800), sent(response(503), 900), reserved(900), waited(950)];
    expect(deadlines(play(answers, { expectsContinue: true }, plan))).toEqual([1000, 1500, 1500]);
  });

  test('limits an attempt, which otherwise has its own timeout', () => {
    const answers = [read(0), admitted(0), sent(response(503), 350), reserved(350), waited(750), admitted(750)];
    expect(timeouts(play(answers, {}, plan))).toEqual([400, 250]);
  });

  test('leaves an attempt with Expect the time that was left before the upload', () => {
    expect(timeouts(play([admitted(900), read(5000)], { expectsContinue: true }, plan))).toEqual([100]);
  });

  test('leaves a millisecond for an attempt that is admitted too late', () => {
    expect(timeouts(play([read(0), admitted(1200)], {}, plan))).toEqual([1]);
  });
});

describe('the time that is kept free for an attempt', () => {
  const retry = retryPolicy({ minAttemptTime: 250 });
  const untilOf = (facts: Partial<RequestFacts>, answerTime: Millis, plan: Partial<RoutePolicy> = {}) => {
    const script = exchange(
      requestFacts(facts),
      routePolicy({ timeout: 1000, retry, ...plan }),
      () => 0,
      0,
      () => answerTime,
    );
    script.next();
    const { value } = script.next(read(0));
    return value !== undefined && 'deadline' in value ? value.deadline : undefined;
  };

  test("is kept free before its deadline: the least, or the upstream's latency, and at most half of it", () => {
    expect(untilOf(KEYED, 0)).toBe(750);
    expect(untilOf(KEYED, 400)).toBe(600);
    expect(untilOf(KEYED, 5000)).toBe(500);
    expect(untilOf(KEYED, 400, { claims: true })).toBe(600);
    expect(untilOf(KEYED, 400, { retry: retryPolicy() })).toBe(1000);
  });

  test('of a read is what a slow response of the upstream takes, and at most half of its deadline', () => {
    expect(untilOf({ method: 'GET' }, 0)).toBe(1000);
    expect(untilOf({ method: 'GET' }, 100)).toBe(900);
    expect(untilOf({ method: 'GET' }, 5000)).toBe(500);
    expect(untilOf({ method: 'GET' }, 400, { perTryTimeout: 300 })).toBe(700);
  });

  test('is no more than the timeout of one attempt', () => {
    expect(untilOf(KEYED, 400, { perTryTimeout: 300 })).toBe(700);
    expect(untilOf(KEYED, 400, { perTryTimeout: 100 })).toBe(750);
  });

  const startsOf = (answers: readonly StepResult[], facts: Partial<RequestFacts>, plan: Partial<RoutePolicy>) =>
    play(answers, facts, { timeout: 1000, perTryTimeout: 1000, retry, ...plan }).steps.flatMap((step) =>
      step.do === 'send' ? [step.startBy] : [],
    );
  const answers = [read(0), admitted(100), sent(response(503), 200), reserved(200), waited(300), admitted(300)];

  test('is kept free after the wait for a connection too, after which nothing is sent', () => {
    expect(startsOf(answers, KEYED, {})).toEqual([750, 750]);
    expect(startsOf(answers, KEYED, { retry: retryPolicy({ minAttemptTime: 700 }) })).toEqual([500, 300]);
    expect(startsOf(answers, { method: 'GET' }, {})).toEqual([1000, 1000]);
  });

  test('is kept free before the end of each attempt, and takes at most half of the attempt', () => {
    expect(startsOf(answers, KEYED, { perTryTimeout: 600 })).toEqual([450, 650]);
    expect(startsOf(answers, KEYED, { perTryTimeout: 200 })).toEqual([200, 400]);
    expect(startsOf(answers, { method: 'GET' }, { perTryTimeout: 600 })).toEqual([700, 900]);
  });

  test('is not kept free for a streamed body, which is uploaded first', () => {
    expect(startsOf([read(0, false), admitted(100)], KEYED, {})).toEqual([Number.POSITIVE_INFINITY]);
  });

  test('leaves a certain failure if the wait for a connection used it up', () => {
    const late = [read(0), admitted(100), sent(failure('timeout', false), 800), denied('deadline', 800)];
    expect(play(late, KEYED, { timeout: 1000, retry }).verdict).toMatchObject({ kind: 'fail', reason: 'timeout' });
  });

  test('is based on the median of the last nine responses on a route, from the third response on', () => {
    const times = new LatencyEstimates();
    const time = times.of('/charges', true);
    for (const [took, median] of [
      [5000, 0],
      [80, 0],
      [90, 90],
      [100, 90],
    ] as const) {
      time.onAnswer(took);
      expect(time.usual()).toBe(median);
    }
    for (let i = 0; i < 5; i += 1) time.onAnswer(400);
    expect(times.of('/charges', true).usual()).toBe(400);
    expect(times.of('/other', true).usual()).toBe(0);
  });

  test('of a read is based on the second longest of the last nine responses', () => {
    const times = new LatencyEstimates();
    const time = times.of('/charges', false);
    for (const [took, slow] of [
      [90, 0],
      [5000, 0],
      [100, 100],
      [110, 110],
    ] as const) {
      time.onAnswer(took);
      expect(time.slow()).toBe(slow);
    }
    for (let i = 0; i < 7; i += 1) time.onAnswer(400 + i);
    expect(time.slow()).toBe(405);
    expect(times.of('/charges', true).slow()).toBe(0);
  });

  test('of a read does not count errors, except long waits for nothing', () => {
    const time = new LatencyEstimates().of('/charges', false);
    const of = (outcome: AttemptOutcome, took: Millis): AttemptOutcome => ({ ...outcome, took });
    for (let i = 0; i < 9; i += 1) time.onReadEnd(of(response(200), 100));
    for (let i = 0; i < 9; i += 1) {
      time.onReadEnd(of(response(404), 1));
      time.onReadEnd(of(failure('connect', false), 5000));
      time.onReadEnd(of(failure('timeout', false), 5000));
      time.onReadEnd(of(failure('timeout', true), 50));
    }
    expect(time.slow()).toBe(100);
    for (let i = 0; i < 2; i += 1) time.onReadEnd(of(failure('timeout', true), 700));
    expect(time.slow()).toBe(700);
  });

  test('follows a change within five responses, and ignores one slow response among fast ones', () => {
    const time = new LatencyEstimates().of('/charges', true);
    for (let i = 0; i < 9; i += 1) time.onAnswer(100);
    for (let i = 0; i < 4; i += 1) time.onAnswer(9000);
    expect(time.usual()).toBe(100);
    time.onAnswer(9000);
    expect(time.usual()).toBe(9000);
  });
});

describe('a request that must not be retried is sent once', () => {
  test.each<[string, AttemptOutcome, Partial<RequestFacts>, RetryOutcome]>([
    ['a write without a key', response(503), { method: 'POST' }, 'not_idempotent'],
    ['a veto', response(503, { retryAdvice: 'never' }), {}, 'upstream_veto'],
    ['a retry of another proxy', response(503), { priorAttempts: 1 }, 'attempts_exhausted'],
    ['a hint beyond the maximum wait', response(429, { retryAfterMs: 61_000 }), {}, 'retry_after_too_long'],
  ])('with %s', (_, outcome, request, retryOutcome) => {
    const played = play(upTo(outcome), request);
    expect(does(played)).toBe('body admit send');
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 1, retryOutcome });
  });

  test('with a body too large to buffer', () => {
    const played = play([read(0, false), admitted(0), sent(response(503), 10)]);
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 1, retryOutcome: 'body_too_large' });
  });
});

describe('the response in hand is forwarded when a retry is denied', () => {
  test.each<RetryOutcome>(['budget_exhausted', 'deadline'])('because of %s', (why) => {
    expect(play([...upTo(response(503)), denied(why, 10)]).verdict).toEqual({
      kind: 'forward',
      unknown: false,
      attempts: 1,
      retryOutcome: why,
    });
  });

  test('but an attempt without a response is reported as a failure', () => {
    expect(play([...upTo(failure('timeout', true)), denied('deadline', 10)]).verdict).toEqual({
      kind: 'fail',
      reason: 'timeout',
      attempts: 1,
      retryOutcome: 'deadline',
    });
  });

  test('also after the last allowed attempt', () => {
    const played = play(
      [...retryAfter(response(503)), admitted(110), sent(response(502), 120)],
      {},
      { retry: retryPolicy({ attempts: 2 }) },
    );
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 2, retryOutcome: 'attempts_exhausted' });
  });
});

describe('the result of a requested retry', () => {
  test('is success at any definite response', () => {
    for (const status of [200, 302, 404]) {
      const played = play([...retryAfter(response(503)), admitted(110), sent(response(status), 120)]);
      expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 2, retryOutcome: 'success' });
    }
  });

  test('is undefined at another error that is not retried', () => {
    const retry = retryPolicy({ retryOn: { ...retryPolicy().retryOn, statuses: new Set([503]), reset: false } });
    const end = (outcome: AttemptOutcome) =>
      play([...retryAfter(response(503)), admitted(110), sent(outcome, 120)], {}, { retry }).verdict;
    expect(end(response(500))).toMatchObject({ kind: 'forward', attempts: 2, retryOutcome: undefined });
    expect(end(response(429))).toMatchObject({ kind: 'forward', attempts: 2, retryOutcome: undefined });
    expect(end(failure('reset', true))).toMatchObject({ kind: 'fail', attempts: 2, retryOutcome: undefined });
  });

  test('is undefined if nothing failed', () => {
    expect(play(upTo(response(404))).verdict).toMatchObject({ retryOutcome: undefined });
    expect(play(upTo(failure('connect', false)), {}, { retry: retryPolicy({ attempts: 1 }) }).verdict).toEqual({
      kind: 'fail',
      reason: 'connect',
      attempts: 1,
      retryOutcome: 'attempts_exhausted',
    });
  });
});

describe('a refusal by the gate', () => {
  test('before the first send gets a response of Tidegate, with a Retry-After', () => {
    expect(play([read(0), refused('over_share', 0)]).verdict).toEqual({
      kind: 'refuse',
      why: 'over_share',
      retryAfterMs: 3000,
      attempts: 0,
      retryOutcome: undefined,
    });
  });

  test('after an attempt that cannot have taken effect gets the same response', () => {
    for (const outcome of [response(429), response(503), failure('connect', false)]) {
      expect(play([...retryAfter(outcome), refused('queue_timeout', 200)], KEYED).verdict).toEqual({
        kind: 'refuse',
        why: 'queue_timeout',
        retryAfterMs: 3000,
        attempts: 1,
        retryOutcome: 'deadline',
      });
    }
  });

  test('after any failed attempt of a safe request gets the same response', () => {
    expect(play([...retryAfter(failure('reset', true)), refused('blocked', 200)]).verdict).toMatchObject({
      kind: 'refuse',
      why: 'blocked',
    });
  });
});

describe('a write that may have taken effect is never reported as not executed', () => {
  const ambiguous: readonly AttemptOutcome[] = [
    failure('reset', true),
    failure('timeout', true),
    response(500),
    response(502),
    response(504),
    response(524),
  ];

  test.each(ambiguous)('if a retry is refused after %o', (outcome) => {
    for (const why of ['over_share', 'held', 'blocked', 'queue_timeout', 'queue_full', 'draining'] as const) {
      expect(play([...retryAfter(outcome), refused(why, 200)], KEYED).verdict).toEqual({
        kind: 'unknown',
        reason: why,
        attempts: 1,
        retryOutcome: 'deadline',
      });
    }
  });

  test.each([
    [429, 'throttled'],
    [503, 'not_processed'],
    [501, 'not_processed'],
    [505, 'not_processed'],
    [529, 'not_processed'],
    [409, 'rejected'],
  ] as const)('if a later %i concerns only its own attempt', (status, reason) => {
    const retry = retryPolicy({ attempts: 2 });
    for (const outcome of ambiguous) {
      const played = play([...retryAfter(outcome), admitted(110), sent(response(status), 120)], KEYED, { retry });
      expect(played.verdict).toEqual({
        kind: 'unknown',
        reason,
        status,
        attempts: 2,
        retryOutcome: 'attempts_exhausted',
      });
    }
  });

  const REJECTED = [300, 303, 307, 400, 401, 403, 404, 405, 407, 408, 410, 412, 413, 415, 421, 422, 425, 431, 451];

  test.each(REJECTED)('if a later %i may be from a router in front of the upstream', (status) => {
    const script = [admitted(110), sent(response(status), 120)];
    for (const facts of [KEYED, { method: 'PUT' }, { method: 'DELETE' }, { method: 'PATCH', keyed: true }]) {
      const { verdict } = play([...retryAfter(response(500)), ...script], facts);
      expect(verdict).toMatchObject({ kind: 'unknown', reason: 'rejected', status, attempts: 2 });
    }
  });

  test('but one whose earlier attempts had no effect is reported plainly', () => {
    for (const status of REJECTED) {
      for (const first of [failure('connect', false), response(429), response(503)]) {
        const played = play([...retryAfter(first), admitted(110), sent(response(status), 120)], KEYED);
        expect(played.verdict).toMatchObject({ kind: 'forward', unknown: false, attempts: 2 });
      }
    }
  });

  test('but a response marked as replayed resolves it, whatever its status', () => {
    const replayed = (status: number): AttemptOutcome => ({ ...response(status), isReplayed: true }) as AttemptOutcome;
    for (const [status, unknown] of [
      [400, false],
      [404, false],
      [500, false],
      [409, false],
    ] as const) {
      const retry = retryPolicy({ attempts: 3 });
      const answers = [...retryAfter(failure('reset', true)), admitted(110), sent(replayed(status), 120)];
      expect(play(answers, KEYED, { retry }).verdict).toMatchObject({ kind: 'forward', unknown, attempts: 2 });
    }
  });

  test('if a later connection is refused', () => {
    const retry = retryPolicy({ attempts: 2 });
    const played = play(
      [...retryAfter(failure('reset', true)), admitted(110), sent(failure('connect', false), 120)],
      KEYED,
      { retry },
    );
    expect(played.verdict).toMatchObject({ kind: 'unknown', reason: 'connect', attempts: 2 });
  });

  test('if later attempts had no effect', () => {
    const played = play(
      [
        ...retryAfter(failure('reset', true)),
        admitted(110),
        sent(response(429), 120),
        reserved(120),
        waited(220),
        refused('queue_full', 220),
      ],
      KEYED,
    );
    expect(played.verdict).toMatchObject({ kind: 'unknown', reason: 'queue_full', attempts: 2 });
  });

  test('if a retry is denied', () => {
    for (const reason of ['reset', 'timeout'] as const) {
      for (const why of ['deadline', 'budget_exhausted'] as const) {
        expect(play([...upTo(failure(reason, true)), denied(why, 10)], KEYED).verdict).toEqual({
          kind: 'unknown',
          reason,
          attempts: 1,
          retryOutcome: why,
        });
      }
    }
  });

  test('if it has no key, and is not retried', () => {
    expect(play(upTo(failure('reset', true)), { method: 'POST' }).verdict).toEqual({
      kind: 'unknown',
      reason: 'reset',
      attempts: 1,
      retryOutcome: 'not_idempotent',
    });
  });

  test('if an error in hand is forwarded, which is marked as unknown', () => {
    for (const status of [500, 502, 504]) {
      const played = play(upTo(response(status)), { method: 'POST' });
      expect(played.verdict).toEqual({ kind: 'forward', unknown: true, attempts: 1, retryOutcome: 'not_idempotent' });
    }
  });

  test('if a shutdown ends its sleep', () => {
    expect(play([...upTo(failure('reset', true)), reserved(10), draining(20)], KEYED).verdict).toEqual({
      kind: 'unknown',
      reason: 'draining',
      attempts: 1,
      retryOutcome: 'deadline',
    });
  });

  test('but a definite response resolves it', () => {
    for (const status of [200, 201, 204, 402]) {
      const played = play([...retryAfter(failure('reset', true)), admitted(110), sent(response(status), 120)], KEYED);
      expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 2, retryOutcome: 'success' });
    }
  });
});

describe('the outcome is not unknown', () => {
  test('for a safe request', () => {
    expect(play(upTo(response(500)), {}, { retry: retryPolicy({ attempts: 1 }) }).verdict).toMatchObject({
      kind: 'forward',
      unknown: false,
    });
    expect(play([...upTo(failure('reset', true)), denied('deadline', 10)]).verdict).toMatchObject({ kind: 'fail' });
  });

  test('for a write that was never sent', () => {
    const never = play([...upTo(failure('connect', false)), denied('deadline', 10)], { method: 'POST' });
    expect(never.verdict).toEqual({ kind: 'fail', reason: 'connect', attempts: 1, retryOutcome: 'deadline' });
  });

  test('for a write that was refused before it took effect', () => {
    for (const status of [429, 503]) {
      expect(play(upTo(response(status)), { method: 'POST' }).verdict).toEqual({
        kind: 'forward',
        unknown: false,
        attempts: 1,
        retryOutcome: 'not_idempotent',
      });
    }
  });
});

describe('a departing client', () => {
  const aborted = sent(failure('aborted', true), 50);

  test.each<[string, StepResult[], Partial<RequestFacts>, number]>([
    ['during the upload', [gone(5)], {}, 0],
    ['while queued', [read(0), gone(5)], {}, 0],
    ['during the upload after 100 Continue', [admitted(0), gone(5)], { expectsContinue: true }, 0],
    ['during the first attempt', [read(0), admitted(0), aborted], {}, 1],
  ])('%s ends the exchange without a further step', (_, answers, request, attempts) => {
    expect(play(answers, request).verdict).toEqual({ kind: 'gone', unknown: false, attempts, retryOutcome: undefined });
  });

  test.each<[string, StepResult[], number]>([
    ['during the sleep', [gone(50)], 1],
    ['while a retry is queued', [waited(110), gone(120)], 1],
    ['during a retry', [waited(110), admitted(110), aborted], 2],
  ])('%s ends the retry', (_, answers, attempts) => {
    const played = play([...upTo(response(503)), reserved(10), ...answers]);
    expect(played.verdict).toEqual({ kind: 'gone', unknown: false, attempts, retryOutcome: 'client_gone' });
  });

  test('ends even a write that may have taken effect without a report', () => {
    expect(play([...upTo(failure('reset', true)), reserved(10), gone(50)], KEYED).verdict).toMatchObject({
      kind: 'gone',
    });
  });
});

test('a shutdown ends a wait with a response of Tidegate', () => {
  expect(play([...upTo(response(503)), reserved(10), draining(20)]).verdict).toEqual({
    kind: 'refuse',
    why: 'draining',
    retryAfterMs: 1000,
    attempts: 1,
    retryOutcome: 'deadline',
  });
});

test.each<[string, AttemptOutcome, Millis, Millis]>([
  ['what is left of the upstream’s Retry-After', response(503, { retryAfterMs: 5000 }), 510, 5000],
  ['whole seconds, never less than is left', response(429, { retryAfterMs: 8000 }), 1009, 8000],
  ['a second if less is left', response(503, { retryAfterMs: 5000 }), 4500, 1000],
  ['what is left until an exhausted quota is reset', response(429, { quota: EXHAUSTED }), 3010, 3000],
])('the Retry-After on shutdown is %s', (_, outcome, at, retryAfterMs) => {
  const { verdict } = play([...upTo(outcome), reserved(10), draining(at)]);
  expect(verdict).toMatchObject({ kind: 'refuse', why: 'draining', retryAfterMs });
});

test('the Retry-After on shutdown is not later than that of the upstream, although a retry would be', () => {
  const outcome = response(429, { retryAfterMs: 20_000 });
  const { verdict } = play([...upTo(outcome), reserved(10), draining(1010)], {}, {}, () => 0.5);
  expect(verdict).toMatchObject({ kind: 'refuse', why: 'draining', retryAfterMs: 19_000 });
});

test('the Retry-After on shutdown is a second, although the backoff was longer', () => {
  const retry = retryPolicy({ backOff: fixedDelay(9000) });
  const { verdict } = play([...upTo(response(503)), reserved(10), draining(20)], {}, { retry });
  expect(verdict).toMatchObject({ kind: 'refuse', why: 'draining', retryAfterMs: 1000 });
});

describe('an exchange throws if the interpreter answers a step with a result of another kind', () => {
  test.each<[string, StepResult[]]>([
    ['body', [admitted(0)]],
    ['admitted', [read(0), waited(0)]],
    ['sent', [read(0), admitted(0), reserved(0)]],
    ['reserved', [...upTo(response(503)), waited(10)]],
    ['waited', [...upTo(response(503)), reserved(10), admitted(10)]],
  ])('%s', (expected, answers) => {
    expect(() => play(answers)).toThrow(`expected '${expected}' and received '${answers.at(-1)?.kind}'`);
  });
});

describe('throttling with a status other than 429', () => {
  const throttled = response(200, { throttled: true });

  test('is retried, and forwarded unchanged when retries end', () => {
    const played = play([...retryAfter(throttled), admitted(110), sent(response(200), 120)], KEYED);
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 2, retryOutcome: 'success' });
    const given = play([...upTo(throttled), denied('deadline', 10)], KEYED);
    expect(given.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: 'deadline' });
  });

  test('does not resolve an earlier attempt that may have taken effect', () => {
    const played = play(
      [...retryAfter(response(500)), admitted(110), sent(throttled, 120), denied('deadline', 120)],
      KEYED,
    );
    expect(played.verdict).toMatchObject({ kind: 'unknown', reason: 'throttled' });
  });
});

describe('an idempotency key', () => {
  const claiming = { claims: true };
  const claimed = (at: Millis, firstSentAt?: Millis, isAnswered = false): StepResult => {
    return { kind: 'claimed', at, record: firstSentAt === undefined ? undefined : { firstSentAt, isAnswered } };
  };
  const inUse: StepResult = { kind: 'unclaimed', why: 'key_in_use', mayHaveTakenEffect: true, at: 9 };

  test('is claimed before any limit is charged, and with Expect before the body', () => {
    expect(does(play([read(0), claimed(40), admitted(40)], KEYED, claiming))).toBe('body claim admit send');
    const expects = { ...KEYED, expectsContinue: true };
    expect(does(play([claimed(0), admitted(0), read(5)], expects, claiming))).toBe('claim admit body send');
  });

  test('may be a field of the body', () => {
    const keyed: StepResult = { kind: 'body', replayable: true, keyed: true, at: 0 };
    const broke = sent(failure('reset', true), 10);
    const played = play([keyed, claimed(0), admitted(0), broke], { method: 'POST' }, claiming);
    expect(does(played)).toBe('body claim admit send reserve');
    expect(play([read(0), admitted(0), broke], { method: 'POST' }, claiming).verdict).toMatchObject({
      kind: 'unknown',
      retryOutcome: 'not_idempotent',
    });
  });

  test.each([
    ['an upstream that throttles', sent(response(429), 10)],
    ['one that is busy', sent(response(503), 10)],
    ['one where the key is in use', sent(response(409), 10)],
    ['a firewall in front', sent(response(403), 10)],
    ['a refused connection', sent(failure('connect', false), 10)],
  ])('with an unresolved earlier write stays unknown after %s', (_, outcome) => {
    const once = { ...claiming, retry: retryPolicy({ attempts: 1 }) };
    const again = play([read(0), claimed(0, -450), admitted(0), outcome], KEYED, once);
    expect(again.verdict).toMatchObject({ kind: 'unknown' });
    const first = play([read(0), claimed(0), admitted(0), outcome], KEYED, once);
    expect(first.verdict).not.toMatchObject({ kind: 'unknown' });
  });

  test('with an unresolved earlier write is unknown if it is refused, and in progress after a 409', () => {
    expect(play([read(0), claimed(0, -450), refused('held', 5)], KEYED, claiming).verdict).toMatchObject({
      kind: 'unknown',
      reason: 'held',
    });
    const lock = play([read(0), claimed(0, -450), admitted(0), sent(response(409), 10)], KEYED, claiming);
    expect(does(lock)).toBe('body claim admit send reserve');
  });

  describe('to whose write a response is being sent', () => {
    const record = { firstSentAt: -450, isAnswered: true, isFinal: true };
    const arriving = { ...record, isArriving: true };
    const start = (at: Millis): StepResult[] => [read(0), { kind: 'claimed', at, record: arriving }];
    const known = (isArriving: boolean): StepResult => ({
      kind: 'known',
      record: isArriving ? arriving : record,
      at: 9,
    });
    const once = { ...claiming, retry: retryPolicy({ attempts: 1 }) };

    test.each([
      ['by a limit', [refused('held', 5)], { kind: 'refuse', why: 'held' }, { reason: 'held' }],
      [
        'without a connection',
        [admitted(0), sent(failure('connect', false), 5)],
        { kind: 'fail', reason: 'connect' },
        { reason: 'connect' },
      ],
    ] as const)(
      'is unknown if it is refused %s, and plainly refused once that has ended',
      (_, steps, plain, unknown) => {
        const refusal = (isArriving: boolean) => play([...start(0), ...steps, known(isArriving)], KEYED, once).verdict;
        expect(refusal(true)).toMatchObject({ kind: 'unknown', ...unknown });
        expect(refusal(false)).toMatchObject(plain);
      },
    );

    test('is unknown if the key has expired, and plainly refused once that has ended', () => {
      const refusal = (isArriving: boolean) =>
        play([...start(60), known(isArriving)], { ...KEYED, keyTtl: 500 }, claiming).verdict;
      expect(refusal(true)).toMatchObject({ kind: 'unknown', reason: 'key_expired' });
      expect(refusal(false)).toMatchObject({ kind: 'refuse', why: 'key_expired' });
    });

    test('is plainly refused if it has waited for the request that got this response', () => {
      const waited: StepResult = { kind: 'claimed', at: 0, record: arriving, hasWaited: true };
      const refusal = (record: KeyRecord) =>
        play([read(0), waited, refused('held', 5), { kind: 'known', record, at: 9 }], KEYED, claiming).verdict;
      expect(refusal(arriving)).toMatchObject({ kind: 'refuse', why: 'held' });
      expect(refusal({ firstSentAt: -450, isAnswered: false })).toMatchObject({ kind: 'unknown', reason: 'held' });
    });

    test.each([409, 422, 429, 503])('gets a %i of the upstream as it is', (status) => {
      const rejected = play([...start(0), admitted(0), sent(response(status), 5), known(true)], KEYED, once);
      expect(rejected.verdict).toMatchObject({ kind: 'forward', unknown: false });
    });
  });

  test('is not claimed if nothing depends on it, nor for requests without a key or for safe requests', () => {
    for (const [facts, plan] of [
      [KEYED, {}],
      [{ method: 'POST' }, claiming],
      [{ method: 'GET', keyed: true }, claiming],
    ] as const) {
      expect(does(play([read(0)], facts, plan))).toBe('body admit');
    }
  });

  test('in use gets a short Retry-After, and nothing is sent', () => {
    const { verdict } = play([read(0), inUse], KEYED, claiming);
    expect(verdict).toEqual({
      kind: 'refuse',
      why: 'key_in_use',
      retryAfterMs: 1000,
      attempts: 0,
      retryOutcome: undefined,
    });
  });

  test('that has expired leaves an unresolved write unknown', () => {
    const { verdict } = play([read(0), claimed(9, -500)], { ...KEYED, keyTtl: 500 }, claiming);
    expect(verdict).toEqual({ kind: 'unknown', reason: 'key_expired', attempts: 0, retryOutcome: undefined });
  });

  test('that has expired after its write was answered leaves nothing unresolved', () => {
    const { verdict } = play([read(0), claimed(9, -500, true)], { ...KEYED, keyTtl: 500 }, claiming);
    expect(verdict).toMatchObject({ kind: 'refuse', why: 'key_expired' });
  });

  test('that expires during the upload or the wait for a connection is not sent', () => {
    const facts = { ...KEYED, keyTtl: 500, expectsContinue: true };
    const late = play([claimed(0, 0), admitted(10), read(501)], facts, claiming);
    expect([does(late), late.verdict]).toMatchObject(['claim admit body', { kind: 'unknown', reason: 'key_expired' }]);
    const answers = [claimed(0, 0, true), admitted(10), read(499)];
    const { steps } = play(answers, facts, claiming);
    expect(steps.at(-1)).toMatchObject({ do: 'send', keyValidUntil: 500 });
    const waited = sent(failure('timeout', false), 501);
    expect(play([...answers, waited], facts, claiming).verdict).toMatchObject({ kind: 'refuse', why: 'key_expired' });
  });

  test('of PUT and DELETE, which are idempotent, never expires', () => {
    for (const method of ['PUT', 'DELETE']) {
      const played = play([read(0), claimed(9, -500)], { method, keyed: true, keyTtl: 500 }, claiming);
      expect(does(played)).toBe('body claim admit');
    }
  });

  test('of an answered write has later refusals reported plainly, and a 409 forwarded at once', () => {
    const answered = [read(0), claimed(0, -450, true)];
    expect(play([...answered, refused('held', 5)], KEYED, claiming).verdict).toMatchObject({
      kind: 'refuse',
      why: 'held',
    });
    for (const refusal of [response(409), response(422, { lock: true }), response(400), response(404)]) {
      const { verdict } = play([...answered, admitted(0), sent(refusal, 10)], KEYED, claiming);
      expect(verdict).toMatchObject({ kind: 'forward', unknown: false, attempts: 1 });
    }
  });

  test('that is retried after a 402 has later failures reported plainly, unless they may have taken effect', () => {
    const declined = sent(response(402, { retryAdvice: 'retry' }), 120);
    const upToDecline = [...retryAfter(failure('reset', true)), admitted(110), declined, reserved(120), waited(130)];
    const end = (outcome: AttemptOutcome) =>
      play([...upToDecline, admitted(130), sent(outcome, 140)], KEYED, { retry: retryPolicy({ attempts: 3 }) }).verdict;
    expect(end(response(503))).toMatchObject({ kind: 'forward', unknown: false, attempts: 3 });
    expect(end(response(401))).toMatchObject({ kind: 'forward', unknown: false });
    expect(end(failure('reset', true))).toMatchObject({ kind: 'unknown', reason: 'reset' });
  });

  test('is resent only to the endpoint that may know it, unless all share keys', () => {
    const pinned = ({ steps }: Played) => steps.flatMap((step) => (step.do === 'send' ? [step.isPinned] : []));
    const again = (first: AttemptOutcome, facts: Partial<RequestFacts>, sharesKeys = false) =>
      pinned(play([...retryAfter(first), admitted(110)], facts, { retry: retryPolicy({ sharesKeys }) }));
    expect(again(failure('reset', true), KEYED)).toEqual([false, true]);
    expect(again(failure('reset', true), KEYED, true)).toEqual([false, false]);
    expect(again(response(503), KEYED)).toEqual([false, false]);
    const declined = response(402, { retryAdvice: 'retry' });
    expect(again(declined, KEYED)).toEqual([false, true]);
    expect(again(declined, KEYED, true)).toEqual([false, false]);
    expect(again(declined, { method: 'PUT', keyed: true })).toEqual([false, false]);
    expect(again(failure('reset', true), { method: 'PUT', keyed: true })).toEqual([false, false]);
    expect(pinned(play([read(0), claimed(0, -9), admitted(0)], KEYED, claiming))).toEqual([true]);
    const always = retryPolicy({ unkeyedWrites: 'always' });
    const repeated = play([...retryAfter(failure('reset', true)), admitted(110)], KEYED, { retry: always });
    expect(pinned(repeated)).toEqual([false, true]);
  });

  test('with concurrent requests has those checked before it is reported as not executed', () => {
    const sharing: StepResult = { kind: 'claimed', at: 0 };
    const known = (isOpen: boolean): StepResult => ({
      kind: 'known',
      record: isOpen ? { firstSentAt: 0, isAnswered: false } : undefined,
      at: 9,
    });
    const start = [read(0), sharing];
    const refusal = play([...start, refused('held', 5), known(true)], KEYED, claiming);
    expect([does(refusal), refusal.verdict]).toMatchObject([
      'body claim admit look',
      { kind: 'unknown', reason: 'held' },
    ]);
    const plain = play([...start, refused('held', 5), known(false)], KEYED, claiming);
    expect(plain.verdict).toMatchObject({ kind: 'refuse' });
    const rejected = play([...start, admitted(0), sent(response(404), 5), known(true)], KEYED, claiming);
    expect(rejected.verdict).toMatchObject({ kind: 'unknown', reason: 'rejected', status: 404 });
    expect(does(play([...start, admitted(0), sent(response(201), 5)], KEYED, claiming))).toBe('body claim admit send');
  });

  test('is refused before an attempt if another request has acquired it while this process was stopped', () => {
    const taken: StepResult = { kind: 'known', record: { firstSentAt: 0, isAnswered: false, isInUse: true }, at: 9 };
    const refusal = { kind: 'refuse', why: 'key_in_use', retryAfterMs: 1000 };
    const first = play([read(0), claimed(0), admitted(0), taken], KEYED, claiming);
    expect([does(first), first.verdict]).toMatchObject(['body claim admit look', { ...refusal, attempts: 0 }]);
    const retried = [sent(response(503), 5), reserved(5), waited(7), admitted(8), taken];
    const second = play([read(0), claimed(0), admitted(0), ...retried], KEYED, claiming);
    expect(second.verdict).toMatchObject({ ...refusal, attempts: 1, retryOutcome: 'deadline' });
  });

  test('that still waits at shutdown is unknown if another request may have sent its write', () => {
    const going = (mayHaveTakenEffect: boolean): StepResult => ({
      kind: 'unclaimed',
      why: 'draining',
      mayHaveTakenEffect,
      at: 9,
    });
    expect(play([read(0), going(true)], KEYED, claiming).verdict).toMatchObject({
      kind: 'unknown',
      reason: 'draining',
    });
    expect(play([read(0), going(false)], KEYED, claiming).verdict).toMatchObject({ kind: 'refuse', why: 'draining' });
  });

  test('ends the exchange if its client leaves during the wait', () => {
    expect(play([read(0), gone(9)], KEYED, claiming).verdict).toMatchObject({ kind: 'gone' });
  });

  test('has a lifetime from its first send on, after which nothing is sent', () => {
    const facts = { ...KEYED, keyTtl: 500 };
    const answers = [read(0), admitted(20), sent(response(503), 100), reserved(100), waited(200)];
    const deadlines = play(answers, facts).steps.flatMap((step) => ('deadline' in step ? [step.deadline] : []));
    expect(deadlines).toEqual([10_000, 520, 520]);
    const late = play([read(0), admitted(20), sent(response(503), 421)], facts);
    expect(late.verdict).toMatchObject({ kind: 'forward', retryOutcome: 'key_expired' });
    const before = play([read(0), claimed(0, -450), admitted(0), sent(response(503), 10)], facts, claiming);
    expect(before.verdict).toMatchObject({ retryOutcome: 'key_expired' });
  });

  test('has no lifetime before its first send', () => {
    const answers = [read(0), admitted(20), sent(failure('connect', false), 800), reserved(800), waited(900)];
    const played = play([...answers, admitted(900)], { ...KEYED, keyTtl: 500 });
    expect(does(played)).toBe('body admit send reserve wait admit send');
    expect(played.steps.at(-2)).toMatchObject({ deadline: 10_000 });
  });
});

describe('a write whose response is kept', () => {
  const keyed = { method: 'POST', keyed: true };
  const record = { firstSentAt: -1000, isAnswered: true, isFinal: true };
  const claimed = (response: 'none' | 'kept' | 'other_request'): StepResult => ({
    kind: 'claimed',
    record,
    response,
    at: 5,
  });

  test('is neither admitted nor sent, even after the upstream has forgotten the key', () => {
    const request = { ...keyed, keyTtl: 10 };
    for (const [response, verdict] of [
      ['kept', { kind: 'replay', unknown: false }],
      ['other_request', { kind: 'refuse', why: 'key_reused', retryAfterMs: undefined }],
      ['none', { kind: 'refuse', why: 'key_expired', retryAfterMs: undefined }],
    ] as const) {
      const played = play([read(0), claimed(response)], request, { claims: true });
      expect(played.verdict).toEqual({ ...verdict, attempts: 0, retryOutcome: undefined });
      expect(played.steps.map((step) => step.do).filter((step) => step !== 'look')).toEqual(['body', 'claim']);
    }
  });

  test('is not plainly refused for another body while no client has the response', () => {
    const response = 'other_request';
    for (const open of [
      { firstSentAt: -1000, isAnswered: false },
      { ...record, isArriving: true },
    ]) {
      const { verdict } = play([read(0), { kind: 'claimed', record: open, response, at: 5 }], keyed, { claims: true });
      expect(verdict).toEqual({ kind: 'unknown', reason: 'key_reused', attempts: 0, retryOutcome: undefined });
      const kept = play([read(0), { kind: 'claimed', record: open, response: 'kept', at: 5 }], keyed, { claims: true });
      expect(kept.verdict).toEqual({ kind: 'replay', unknown: true, attempts: 0, retryOutcome: undefined });
    }
  });
});
