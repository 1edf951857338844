/** A client that sends one request at a time, and returns when its Retry-After names, is not refused a second time. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';
import { limitedTo, SHARED } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const MINUTES = 60_000;

/** Turns in a run: as many as a limit of two a second has in ten minutes. A faster limit has them in less time. */
const TURNS = 1200;

interface Crowd {
  readonly rate: number;
  readonly clients: number;
  /** How much later than named a client returns, less than the rest of the second. */
  readonly late: number;
  readonly seed: number;
  /** Each client has a request at each of these endpoints at once. Each endpoint has a limit of this rate. */
  readonly endpoints?: readonly string[];
  /** How long a client takes to send a body. */
  readonly upload?: number;
  readonly maxWait?: number;
  readonly timeout?: number;
  /** Clients of another class, which are not counted. */
  readonly others?: { readonly clients: number; readonly weight: number };
  readonly turns?: number;
}

/** How many requests were refused once, how many again, and how many were served. */
interface Played {
  readonly once: number;
  readonly again: number;
  readonly served: number;
}

function play({ rate, clients, late, seed, endpoints, upload, others, ...rest }: Crowd): Played {
  const { maxWait = 1000, timeout, turns = TURNS } = rest;
  const queue = { maxWait, maxDepth: 1000 };
  const fixed = { initialRate: undefined, maxRate: rate, minRate: 0.1, cooldown: 1000 };
  const nested = endpoints?.map((name) => ({ name, scope: 'upstream' as const, isKeyed: false, rate: fixed }));
  const world = new World({
    seed,
    upstream: nested === undefined ? { rate: fixed, queue } : { rate: { ...fixed, maxRate: 1000 }, nested, queue },
  });
  let [once, again, served] = [0, 0, 0];
  const ask = (client: string, endpoint: string | undefined, tries: number, weight = 1): void => {
    const counts = weight === 1 ? 1 : 0;
    const endpointRefs: readonly LimitRef[] =
      endpoint === undefined ? [] : [{ upstream: 'up', nested: endpoint, scope: 'upstream', key: '' }];
    world.call({
      client,
      weight,
      refs: [SHARED, ...endpointRefs],
      ...(upload === undefined ? {} : { upload }),
      ...(timeout === undefined ? {} : { policy: { timeout } }),
      onVerdict: ({ verdict }) => {
        if (verdict?.kind !== 'refuse') {
          served += counts;
          return void world.at(world.now + 20, () => ask(client, endpoint, 1, weight));
        }
        if (tries === 1) once += counts;
        else again += counts;
        const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, world.random));
        world.at(world.now + 1000 * seconds + late, () => ask(client, endpoint, tries + 1, weight));
      },
    });
  };
  for (const endpoint of endpoints ?? [undefined]) {
    for (let i = 0; i < clients; i += 1) world.at(37 * i, () => ask(`client ${i}`, endpoint, 1));
  }
  const { clients: number = 0, weight = 1 } = others ?? {};
  for (let i = 0; i < number; i += 1) world.at(29 * i, () => ask(`other ${i}`, undefined, 1, weight));
  world.runUntil((1000 * turns) / rate);
  return { once, again, served };
}

test.each([
  { rate: 2, clients: 20, late: 0 },
  { rate: 2, clients: 8, late: 900 },
  { rate: 5, clients: 30, late: 0 },
  { rate: 20, clients: 100, late: 300 },
])('no client is refused twice: $clients clients at $rate/s that return $late ms late', (crowd) => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const { once, again } = play({ ...crowd, seed });
    expect(once).toBeGreaterThan(500);
    expect(again).toBe(0);
  }
});

test.each([
  { rate: 2, clients: 5 },
  { rate: 2, clients: 20 },
  { rate: 10, clients: 60 },
])('no client is refused twice: $clients clients that use two endpoints of $rate/s each', (crowd) => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const { once, again } = play({ ...crowd, late: 5, seed, endpoints: ['payments', 'refunds'] });
    expect(once).toBeGreaterThan(200);
    expect(again).toBe(0);
  }
});

test.each([
  { rate: 2, clients: 16, upload: 3000 },
  { rate: 2, clients: 24, upload: 6000 },
  // With fewer turns, too few are refused while bodies take this long.
  { rate: 5, clients: 60, upload: 10_000, turns: 2 * TURNS },
])('no client is refused twice: $clients clients at $rate/s that take $upload ms to send a body', (crowd) => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const { once, again } = play({ ...crowd, late: 5, seed });
    expect(once).toBeGreaterThan(200);
    expect(again).toBe(0);
  }
});

test.each([
  { rate: 2, clients: 50, maxWait: 20_000, timeout: 10_000 },
  { rate: 5, clients: 130, maxWait: 20_000, timeout: 10_000 },
  { rate: 2, clients: 50, maxWait: 10_000, timeout: 10_000 },
  { rate: 2, clients: 20, maxWait: 6000, timeout: 5000 },
])(
  'few clients are refused twice: $clients at $rate/s, $maxWait ms in the queue, a timeout of $timeout ms',
  (crowd) => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const { once, again } = play({ ...crowd, late: 5, seed });
      expect(once).toBeGreaterThan(200);
      expect(again).toBeLessThanOrEqual(0.01 * once);
    }
  },
);

test.each([
  // The first refusals come before it is known how fast turns come.
  { rate: 4, high: 6, low: 3, weight: 10, mostAgain: 0.03 },
  { rate: 2, high: 6, low: 3, weight: 4, mostAgain: 0.02 },
  { rate: 20, high: 30, low: 5, weight: 20, mostAgain: 0.06 },
  // While both clients of the high weight stay away, nothing shows how soon they return.
  { rate: 4, high: 2, low: 12, weight: 10, mostAgain: 0.15 },
])(
  'few clients are refused twice: $low of weight 1 beside $high of weight $weight at $rate/s',
  ({ rate, high, low, weight, mostAgain }) => {
    const turns = 600 * rate; // few of them are of clients of weight 1
    const fair = (turns * low) / (low + high * weight);
    for (let seed = 1; seed <= 5; seed += 1) {
      const others = { clients: high, weight };
      const { once, again, served } = play({ rate, clients: low, late: 5, seed, others, turns });
      expect(once).toBeGreaterThan(100);
      expect(again).toBeLessThanOrEqual(mostAgain * once);
      expect(served).toBeGreaterThan(0.95 * fair);
    }
  },
);

describe('clients beside others that return too early', () => {
  /** The Retry-After of all refusals of three clients that send every 3 s and return on time, in seconds, and their served requests. */
  function besideEarlyReturns({ clients, every, maxWait }: Readonly<Record<'clients' | 'every' | 'maxWait', number>>) {
    const world = new World({
      upstream: { ...limitedTo(5), queue: { maxWait, maxDepth: 1000 } },
    });
    const named: number[] = [];
    const counts = { served: 0, again: 0 };
    const callEarly = (client: string): void => {
      world.call({ client, onVerdict: () => void world.at(world.now + every, () => callEarly(client)) });
    };
    const callOnTime = (client: string, isReturn: boolean): void => {
      world.call({
        client,
        onVerdict: ({ verdict }) => {
          if (verdict?.kind !== 'refuse') {
            counts.served += 1;
            return void world.at(world.now + 3000, () => callOnTime(client, false));
          }
          if (isReturn) counts.again += 1;
          const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, world.random));
          named.push(seconds);
          world.at(world.now + 1000 * seconds, () => callOnTime(client, true));
        },
      });
    };
    for (let i = 0; i < clients; i += 1) world.at(31 * i, () => callEarly(`impatient ${i}`));
    for (let i = 0; i < 3; i += 1) world.at(8000 + 211 * i, () => callOnTime(`obedient ${i}`, false));
    world.runUntil(2 * MINUTES);
    return { named, counts };
  }

  test.each([
    { clients: 20, every: 1000, maxWait: 1000 },
    { clients: 20, every: 1000, maxWait: 0 },
    { clients: 8, every: 300, maxWait: 1000 },
    { clients: 8, every: 300, maxWait: 0 },
  ])('are named their turn: $clients others return $every ms after a response, $maxWait ms in the queue', (others) => {
    const { named, counts } = besideEarlyReturns(others);
    expect(Math.max(...named)).toBeLessThanOrEqual(5); // 23 clients at 5/s
    expect(counts.again).toBe(0);
    expect(counts.served).toBeGreaterThan(3 * 20);
  });

  test('have no later slots for the early returns, which only delay those of the client that returns early', () => {
    const world = new World({
      upstream: { ...limitedTo(5), queue: { maxWait: 0, maxDepth: 100 } },
      random: () => 0.5,
    });
    const retryAfter = (client: string): number => {
      const { ticket, admission } = world.arrive({ client });
      world.gate.onExchangeEnd(ticket);
      return admission?.kind === 'refused' ? admission.retryAfterMs : Number.NaN;
    };
    world.arrive({ client: 'first' });
    for (let i = 0; i < 12; i += 1) retryAfter(`other ${i}`);
    const own = Array.from({ length: 40 }, () => retryAfter('impatient'));
    expect(own.slice(1).every((time, i) => time > (own[i] ?? 0))).toBe(true);
    expect(own.at(-1)).toBeGreaterThan(10_000);
    expect(retryAfter('another')).toBeLessThan(own[0]! + 1000);
  });
});

describe('checks that cannot wait, of many keys of one address beside other addresses,', () => {
  interface Counts {
    passed: number;
    returned: number;
    refusedAgain: number;
  }

  /** Each client sends again at once when it was served, and exactly at the named time when it was refused. */
  function check({ rate, keys, others }: Readonly<Record<'rate' | 'keys' | 'others', number>>) {
    const world = new World({ upstream: limitedTo(rate) });
    const ask = (counts: Counts, client: string, addressGroup: string, isReturn: boolean): void => {
      const { ticket, admission } = world.arrive({ client, addressGroup, isSentExternally: true, deadline: world.now });
      world.gate.onExchangeEnd(ticket);
      const isRefused = admission?.kind === 'refused';
      if (isReturn) counts.returned += 1;
      if (isRefused && isReturn) counts.refusedAgain += 1;
      if (!isRefused) counts.passed += 1;
      const delay = isRefused ? 1000 * Number(formatRetryAfter(admission.retryAfterMs, world.random)) : 20;
      world.at(world.now + delay, () => ask(counts, client, addressGroup, isRefused));
    };
    const none = (): Counts => ({ passed: 0, returned: 0, refusedAgain: 0 });
    const [ofKeys, ofOthers] = [none(), none()];
    for (let i = 0; i < keys; i += 1) world.at(2 * i, () => ask(ofKeys, `key ${i}`, 'here', false));
    for (let i = 0; i < others; i += 1) world.at(2000 + 2 * i, () => ask(ofOthers, `other ${i}`, `there ${i}`, false));
    world.runUntil(5 * MINUTES);
    return { ofKeys, ofOthers };
  }

  test.each([
    { rate: 2, keys: 20, others: 0 },
    { rate: 2, keys: 28, others: 1 },
    { rate: 2, keys: 28, others: 5 },
    { rate: 10, keys: 63, others: 5 },
    { rate: 10, keys: 63, others: 20 },
  ])('pass at $rate/s, with $keys keys beside $others other addresses', (crowd) => {
    const { ofKeys, ofOthers } = check(crowd);
    expect(ofKeys.refusedAgain).toBeLessThan(0.15 * ofKeys.returned);
    expect(ofOthers.refusedAgain).toBeLessThanOrEqual(0.05 * ofOthers.returned);
    expect(ofKeys.passed + ofOthers.passed).toBeGreaterThan(0.95 * crowd.rate * 300);
  });

  test('leave more than twice the share of one of the keys to each other address', () => {
    const { ofKeys, ofOthers } = check({ rate: 10, keys: 63, others: 5 });
    expect(ofOthers.passed / 5).toBeGreaterThan((2 * ofKeys.passed) / 63);
  });
});

describe('a check that cannot wait, of a client that returns at the named time,', () => {
  /** A token is taken and a check refused; 1.5 s later its client may return, and the token of that time is taken too. */
  function returning(perSecond = 1): { readonly world: World; readonly check: (client: string) => unknown } {
    const world = new World({
      upstream: { rate: { initialRate: undefined, maxRate: perSecond, minRate: 0.1, cooldown: 1000 } },
    });
    world.now = 10_000;
    const check = (client: string): unknown => {
      const queued = world.arrive({ client, isSentExternally: true, deadline: world.now });
      world.gate.onExchangeEnd(queued.ticket);
      return queued.admission;
    };
    expect(check('first')).toEqual({ kind: 'admitted' });
    expect(check('second')).toMatchObject({ kind: 'refused', why: 'over_share', retryAfterMs: 2000 / perSecond });
    world.runUntil(11_500);
    expect(check('third')).toEqual({ kind: 'admitted' });
    return { world, check };
  }

  test('takes the next token early, once, and delays later tokens by as much', () => {
    const { world, check } = returning();
    expect(check('second')).toEqual({ kind: 'admitted' });
    expect(check('second')).toMatchObject({ kind: 'refused', why: 'over_share' });
    world.runUntil(13_499);
    expect(check('fourth')).toMatchObject({ kind: 'refused', why: 'over_share' });
    world.runUntil(13_500);
    expect(check('fifth')).toEqual({ kind: 'admitted' });
  });

  test('is refused if it follows the refused check at once, however soon the next token is due', () => {
    const { check, world } = returning(4);
    expect(check('second')).toEqual({ kind: 'admitted' });
    expect(check('fourth')).toMatchObject({ kind: 'refused', retryAfterMs: 750 });
    world.runUntil(11_510);
    expect(check('fourth')).toMatchObject({ kind: 'refused' });
    expect(check('fourth')).toMatchObject({ kind: 'refused' });
  });

  test('is refused while a stop of the upstream is in effect', () => {
    const { world, check } = returning();
    world.limit.meter.stop(11_900);
    expect(check('second')).toMatchObject({ kind: 'refused', why: 'blocked' });
  });
});

test('a client with two requests at a time, each repeated when its Retry-After names, has its share', () => {
  const world = new World({ upstream: { ...limitedTo(5), queue: { maxWait: 1000, maxDepth: 1000 } } });
  const served = new Map<string, number>();
  const ask = (client: string): void => {
    world.call({
      client,
      onVerdict: ({ verdict }) => {
        if (verdict?.kind !== 'refuse') {
          served.set(client, (served.get(client) ?? 0) + 1);
          return void world.at(world.now + 5, () => ask(client));
        }
        const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, world.random));
        world.at(world.now + 1000 * seconds + 5, () => ask(client));
      },
    });
  };
  for (let i = 0; i < 18; i += 1) world.at(1000 * world.random(), () => ask(`other ${i}`));
  for (let i = 0; i < 2; i += 1) world.at(1000 * world.random(), () => ask('two'));
  world.runUntil(2 * MINUTES);
  // Its share is one in 19, or 31 of 600.
  expect(served.get('two')).toBeGreaterThan(20);
});
