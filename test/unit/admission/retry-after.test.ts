/** The Retry-After for the client of a request that the upstream refused without a time. */
import { describe, expect, test } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Respond, CallRecord } from '../../support/core/call-record.ts';
import { response, SEND_ONCE } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const ONCE = { policy: { retry: SEND_ONCE } };

function bare(status: number, impliedWait: Millis = 0, hints: Parameters<typeof response>[1] = {}): AttemptOutcome {
  return { ...response(status, hints), impliedWait } as AttemptOutcome;
}

/** All are sent at once, and refused together. */
const refuse =
  (outcome: AttemptOutcome): Respond =>
  () => ({ outcome, after: 100 });

function retryAfterOf({ verdict }: CallRecord): Millis | undefined {
  return verdict?.kind === 'forward' ? verdict.retryAfterMs : undefined;
}

describe('the Retry-After added to a bare refusal', () => {
  test('names a slot for each client, at the reduced rate', () => {
    const world = new World({ respond: refuse(bare(429)), random: () => 0.5 });
    const records = Array.from({ length: 20 }, (_, i) => world.call({ client: `c${i}`, ...ONCE }));
    world.runUntil(100);
    const times = records.map(retryAfterOf).filter((retryAfter) => retryAfter !== undefined);
    expect(times).toHaveLength(20);
    expect(times.slice(1).every((retryAfter, i) => retryAfter > (times[i] ?? 0))).toBe(true);
  });

  test('lets each client pass at that time', () => {
    const refused = new Set<string>();
    const respond: Respond = ({ client }) => {
      const isFirst = !refused.has(client);
      refused.add(client);
      return { outcome: isFirst ? bare(429) : response(200), after: 50 };
    };
    const world = new World({ respond, upstream: { queue: { maxWait: 0, maxDepth: 1000 } }, random: () => 0.5 });
    const again: CallRecord[] = [];
    for (let i = 0; i < 20; i += 1) {
      const onVerdict = (record: CallRecord): void => {
        const seconds = Math.max(1, Math.round((retryAfterOf(record) ?? 0) / 1000));
        world.at(world.now + 1000 * seconds, () => void again.push(world.call({ client: `c${i}`, ...ONCE })));
      };
      world.call({ client: `c${i}`, ...ONCE, onVerdict });
    }
    world.runUntil(60_000);
    expect(again.map(({ verdict }) => verdict?.kind)).toEqual(Array.from({ length: 20 }, () => 'forward'));
  });

  test('is not earlier than the upstream requests, in whole seconds, and delays no other client', () => {
    let n = 0;
    const respond: Respond = () => ({ outcome: (n += 1) === 1 ? bare(429, 20_400) : bare(429), after: 10 });
    const world = new World({ respond, random: () => 0.5 });
    const [first, second] = ['a', 'b'].map((client) => world.call({ client, ...ONCE }));
    world.runUntil(10);
    expect(retryAfterOf(first!)).toBe(21_000);
    expect(retryAfterOf(second!)).toBeLessThan(5000);
  });

  test('is the end of the hold, if the upstream holds the client by another header', () => {
    const world = new World({ respond: refuse(bare(429, 2500, { retryAfterMs: 2500 })), random: () => 0.5 });
    const record = world.call(ONCE);
    world.runUntil(100);
    expect(retryAfterOf(record)).toBe(3000);
    expect(world.arrive().admission).toMatchObject({ kind: 'refused', why: 'held' });
    world.runUntil(3100);
    expect(world.arrive().admission).not.toMatchObject({ kind: 'refused' });
  });

  test('is no earlier than the next probe, once the refusals have blocked the upstream', () => {
    const world = new World({ respond: refuse(bare(503, 4000, { retryAfterMs: 4000 })), random: () => 0.5 });
    const records = Array.from({ length: 20 }, (_, i) => world.call({ client: `c${i}`, ...ONCE }));
    world.runUntil(100);
    const [limit] = world.gate.view(world.now).limits;
    expect(limit?.state).toBe('blocked');
    expect(retryAfterOf(records.at(-1)!)).toBeGreaterThanOrEqual(4000);
  });

  test('cuts no allowance, because the gate had admitted the requests', () => {
    const world = new World({ respond: refuse(bare(429)), random: () => 0.5 });
    for (let i = 0; i < 100; i += 1) world.call({ client: i % 10 === 0 ? 'other' : 'flood', ...ONCE });
    world.runUntil(100);
    expect(world.events.filter(({ type }) => type === 'throttled')).toHaveLength(100);
    expect(world.events.filter(({ type }) => type === 'client-cut')).toEqual([]);
  });

  test('is absent in observe mode, for a response that has one, and for a response that needs none', () => {
    const observed = new World({ respond: refuse(bare(429)), mode: 'observe' });
    const record = observed.call(ONCE);
    observed.runUntil(100);
    expect(record.verdict).not.toHaveProperty('retryAfterMs');
    for (const outcome of [response(429), response(200), response(503)]) {
      const world = new World({ respond: refuse(outcome) });
      const other = world.call(ONCE);
      world.runUntil(100);
      expect(other.verdict).not.toHaveProperty('retryAfterMs');
    }
  });
});

describe('the Retry-After computed some time after the arrival', () => {
  test('counts from now for a client that is held', () => {
    const world = new World({ random: () => 0.5 });
    const { ticket } = world.arrive();
    world.runUntil(1500);
    world.store.clients.hold(ticket.clientSlot!, 4200, world.now);
    expect(world.gate.retries.retryAfterRejection(ticket, 0, world.now)).toBe(3000); // until 4200, in whole seconds
  });

  test('follows the current state of the limit, whose cooldown may be over', () => {
    const world = new World({ random: () => 0.5 });
    world.serve(world.arrive(), response(429));
    const sent = world.arrive();
    world.send(sent);
    const { ticket } = world.arrive();
    world.runUntil(100);
    world.answer(sent, response(200));
    world.runUntil(5000);
    expect(world.limit.meter.phase).toBe('cooldown');
    world.gate.retries.retryAfterRejection(ticket, 0, world.now);
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('is the unrounded Retry-After of the upstream once the exchange has ended', () => {
    const world = new World({ random: () => 0.5 });
    const arrived = world.arrive();
    world.serve(arrived);
    expect(world.gate.retries.retryAfterRejection(arrived.ticket, 1234, world.now)).toBe(1234);
  });
});

describe('the decision names how the Retry-After of a refusal was chosen', () => {
  /** A pinned rate of 10/s, and no queue. */
  function world(): World {
    const made = new World({ upstream: { queue: { maxWait: 0, maxDepth: 1000 } }, random: () => 0.5 });
    for (const limit of made.gate.limits(0)) {
      limit.setOverride({ pinnedRate: 10, blockedUntil: Number.NEGATIVE_INFINITY }, 0);
    }
    return made;
  }

  test('as shared, for clients that send one request each', () => {
    const at = world();
    const refused = Array.from({ length: 20 }, (_, i) => at.arrive({ client: `c${i}` }));
    const { returnSlot } = at.gate.decisionDetails(refused.at(-1)!.ticket, at.now);
    expect(returnSlot).toBe('shared');
    expect(refused.at(-1)!.admission).toMatchObject({ kind: 'refused', retryAfterMs: 2000 });
  });

  test('as its own, for a client that demands more than three times its share', () => {
    const at = world();
    at.arrive({ client: 'other' });
    const flood = Array.from({ length: 400 }, () => at.arrive({ client: 'flood' }));
    const { ticket, admission } = flood.at(-1)!;
    const details = at.gate.decisionDetails(ticket, at.now);
    expect(details.returnSlot).toBe('own');
    expect(admission).toMatchObject({ retryAfterMs: (details.estimatedWait ?? 0) + 30_000 });
  });

  test('as none of these, for a client that the upstream asked to wait', () => {
    const at = new World({ respond: refuse(response(429, { retryAfterMs: 5000 })), random: () => 0.5 });
    at.call(ONCE);
    at.runUntil(100);
    const { ticket, admission } = at.arrive();
    expect(admission).toMatchObject({ why: 'held' });
    expect(at.gate.decisionDetails(ticket, at.now).returnSlot).toBeUndefined();
  });
});
