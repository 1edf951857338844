import { describe, expect, test } from 'vitest';
import type { WaitingRequest } from '../../support/core/connection-limited-gate.ts';
import { ConnectionLimitedGate } from '../../support/core/connection-limited-gate.ts';
import { failure, limitedTo, response } from '../../support/core/policy-builders.ts';

const waits = ({ admission }: WaitingRequest) => admission === undefined;
const why = ({ admission }: WaitingRequest) => (admission?.kind === 'refused' ? admission.why : admission?.kind);

/** All connections are in use by `client`; requests admitted from then on are sent at once. */
function full(connections: number, upstream = {}, client = 'flood'): ConnectionLimitedGate {
  const at = new ConnectionLimitedGate(connections, upstream);
  for (const guest of at.arriveTimes(connections, client)) at.send(guest);
  at.admitted.length = 0;
  return at;
}

/** One connection comes free, and the request that gets it is sent. */
function serveOne(at: ConnectionLimitedGate): string | undefined {
  const before = at.admitted.length;
  at.vacate();
  const next = at.admitted[before];
  if (next !== undefined) at.send(next);
  return next?.client;
}

describe('a request beyond the free connections', () => {
  test('waits until one comes free', () => {
    const at = full(2);
    const [first, second] = at.arriveTimes(2, 'a');
    expect([first, second].map((guest) => waits(guest!))).toEqual([true, true]);
    at.pass(50);
    expect(serveOne(at)).toBe('a');
    expect([first?.admission?.kind, first?.at, second?.admission]).toEqual(['admitted', 50, undefined]);
    expect(at.gate.view(at.now).limits).toMatchObject([{ queued: 1 }]);
  });

  test('does not wait behind the many requests of another client', () => {
    const at = full(2);
    at.arriveTimes(100, 'flood');
    at.arriveTimes(2, 'calm');
    const served = [serveOne(at), serveOne(at), serveOne(at), serveOne(at)];
    expect(served.filter((client) => client === 'calm')).toHaveLength(2);
  });

  test('is refused at once if its turn is too far ahead and the release rate is known', () => {
    const at = full(2);
    at.gate.connections.onClaimed('up', 'flood');
    at.gate.connections.onClaimed('up', 'flood');
    at.arriveTimes(30, 'flood');
    for (let i = 0; i < 4; i += 1) {
      expect(waits(at.arrive('flood'))).toBe(true); // the first response of each connection carries little information
      at.pass(100);
      at.gate.connections.onReleased('up', 'flood', 200);
      at.gate.connections.onClaimed('up', 'flood');
      serveOne(at);
    }
    const late = at.arrive('flood');
    expect(why(late)).toBe('queue_timeout');
    at.stalled = 2; // these connections give way to the first two of 30
    expect(why(at.arrive('flood'))).toBe('queue_timeout');
    // Its 30 turns, at two in 200 ms.
    expect(late.admission?.kind === 'refused' && late.admission.retryAfterMs).toBeGreaterThan(3000);
    expect(waits(at.arrive('calm'))).toBe(true);
  });

  test('is refused once it has waited for the maximum', () => {
    const at = full(2);
    const guest = at.arrive('a');
    at.pass(999);
    expect(waits(guest)).toBe(true);
    at.pass(1);
    expect(why(guest)).toBe('queue_timeout');
    expect(serveOne(at)).toBeUndefined();
  });

  test('does not wait beyond the depth of the queue', () => {
    const at = full(1, { queue: { maxWait: 1000, maxDepth: 2 } });
    expect(at.arriveTimes(3, 'a').map(why)).toEqual([undefined, undefined, 'queue_full']);
  });

  test('sets no wake time: the gate is not woken for it', () => {
    const at = full(1);
    at.arrive('a');
    expect(at.gate.nextWake()).toBe(1000); // its maximum wait
    at.pass(999);
  });

  test('does not cut the allowance of its client, however large the demand of the client is', () => {
    const at = full(2);
    at.gate.connections.onClaimed('up', 'flood');
    at.arriveTimes(20, 'calm');
    for (let i = 0; i < 40; i += 1) {
      at.pass(50);
      at.arriveTimes(20, 'flood');
      at.gate.connections.onReleased('up', 'flood', 100);
      at.gate.connections.onClaimed('up', 'flood');
      serveOne(at);
    }
    expect(at.events.filter(({ type }) => type === 'client-cut')).toEqual([]);
    expect(at.gate.view(at.now).clients.byState).toMatchObject({ normal: 2, backoff: 0, cooldown: 0 });
  });

  test("waits as long as Little's law predicts, in whatever batches responses end", () => {
    // 256 connections, 50 ms each, 500 clients that repeat as soon as they are answered: none waits longer than 98 ms.
    const at = new ConnectionLimitedGate(256);
    let waiting = at.arriveTimes(500, 'crowd');
    for (let round = 0; round < 40; round += 1) {
      expect(waiting.map(why)).not.toContain('over_share');
      expect(waiting.map(why)).not.toContain('queue_timeout');
      const served = waiting.filter((guest) => why(guest) === 'admitted');
      expect(served.length).toBeGreaterThan(240);
      for (const guest of served) {
        at.send(guest);
        at.gate.connections.onClaimed('up', 'crowd');
      }
      at.pass(50);
      waiting = waiting.filter((guest) => waits(guest));
      for (const guest of served) {
        at.gate.connections.onReleased('up', 'crowd', 50);
        at.answer(guest);
        waiting.push(at.arrive('crowd'));
      }
    }
  });
});

describe('a client with more than its share of the busy connections', () => {
  /** Of four connections `many` has three; it arrived first. */
  const withUnequalUse = (): ConnectionLimitedGate => {
    const at = full(4, {}, 'many');
    for (const holder of ['many', 'many', 'many', 'few']) at.gate.connections.onClaimed('up', holder);
    at.arriveTimes(2, 'many');
    at.arriveTimes(2, 'few');
    return at;
  };

  test('yields to other clients', () => {
    const at = withUnequalUse();
    at.gate.connections.onReleased('up', 'few', 50);
    expect(serveOne(at)).toBe('few');
    at.gate.connections.onClaimed('up', 'few');
    at.gate.connections.onReleased('up', 'many', 50); // two of four are no more than half
    expect(serveOne(at)).toBe('many');
  });

  test('gets the connections that other clients leave unused', () => {
    const at = full(4, {}, 'many');
    for (let i = 0; i < 4; i += 1) at.gate.connections.onClaimed('up', 'many');
    at.arriveTimes(3, 'many');
    at.gate.connections.onReleased('up', 'many', 50);
    expect(serveOne(at)).toBe('many');
    at.gate.connections.onClaimed('up', 'many');
    at.arrive('few');
    at.gate.connections.onReleased('up', 'many', 50);
    expect([serveOne(at), serveOne(at), serveOne(at)]).toEqual(['few', 'many', 'many']);
  });

  test('is not delayed while connections are free', () => {
    const at = new ConnectionLimitedGate(4, limitedTo(10));
    for (let i = 0; i < 6; i += 1) at.gate.connections.onClaimed('up', 'many');
    const [first, waits1] = at.arriveTimes(2, 'many');
    expect(why(first!)).toBe('admitted');
    const behind = at.arrive('few');
    at.pass(100);
    expect([why(waits1!), why(behind)]).toEqual(['admitted', undefined]);
  });
});

describe('a connection', () => {
  test('is reserved for a request that is admitted and not sent yet', () => {
    const at = new ConnectionLimitedGate(2);
    const [first, second, third] = at.arriveTimes(3, 'a');
    expect([first, second, third].map((guest) => why(guest!))).toEqual(['admitted', 'admitted', undefined]);
    at.gate.cancel(first!.ticket, at.now); // its client left during the upload
    expect(why(third!)).toBe('admitted');
    at.send(second!);
    at.send(third!);
    expect(at.busy).toBe(2);
  });

  test('that no request waits for is free for the next one', () => {
    const at = full(1);
    expect(serveOne(at)).toBeUndefined();
    expect(why(at.arrive('a'))).toBe('admitted');
  });

  test('is not assigned to a client that has left', () => {
    const at = full(1);
    const [gone, stays] = at.arriveTimes(2, 'a');
    at.gate.cancel(gone!.ticket, at.now);
    expect(serveOne(at)).toBe('a');
    expect([gone?.admission, why(stays!)]).toEqual([undefined, 'admitted']);
  });

  test('is not assigned to a request without a token', () => {
    const at = new ConnectionLimitedGate(2, limitedTo(10));
    const guests = at.arriveTimes(4, 'a');
    expect(guests.map(why)).toEqual(['admitted', undefined, undefined, undefined]);
    at.send(guests[0]!);
    at.pass(100);
    expect(why(guests[1]!)).toBe('admitted');
    at.send(guests[1]!);
    at.pass(100); // a token, but no connection
    expect(why(guests[2]!)).toBeUndefined();
    at.answer(guests[0]!);
    expect(why(guests[2]!)).toBe('admitted');
    at.send(guests[2]!);
    at.answer(guests[1]!);
    expect(why(guests[3]!)).toBeUndefined(); // a connection, but no token
    at.pass(100);
    expect([why(guests[3]!), guests[3]?.at]).toEqual(['admitted', 300]);
  });
});

describe('with a limit for each client', () => {
  const perClient = { scope: 'client' as const };

  test('connections are still shared fairly', () => {
    const at = full(2, perClient);
    at.arriveTimes(50, 'flood');
    at.arriveTimes(2, 'calm');
    expect(at.gate.view(at.now).limits).toMatchObject([{ scope: 'upstream', queued: 52 }]);
    const served = [serveOne(at), serveOne(at), serveOne(at), serveOne(at)];
    expect(served.filter((client) => client === 'calm')).toHaveLength(2);
  });

  test('a client waits for its own tokens first, and does not hold up the others', () => {
    const at = new ConnectionLimitedGate(1, { ...perClient, ...limitedTo(10) });
    const [first, second] = at.arriveTimes(2, 'a');
    at.send(first!);
    expect(waits(second!)).toBe(true);
    const other = at.arrive('b');
    expect(waits(other)).toBe(true); // for a connection
    at.pass(50);
    expect(serveOne(at)).toBe('b');
    at.pass(50); // now it has its token, but no connection
    expect(waits(second!)).toBe(true);
    expect(serveOne(at)).toBe('a');
    expect(second?.at).toBe(100);
  });

  test('a request that gives up while it waits for a connection returns its token', () => {
    const at = full(1, { ...perClient, ...limitedTo(10) }, 'b');
    const guest = at.arrive('a');
    expect(at.gate.view(at.now).limits.filter(({ queued }) => queued > 0)).toMatchObject([{ scope: 'upstream' }]);
    at.pass(1000);
    expect(why(guest)).toBe('queue_timeout');
    at.gate.onExchangeEnd(guest.ticket);
    expect(guest.ticket.reservedLimits).toEqual([]);
    expect(serveOne(at)).toBeUndefined();
    const next = at.arrive('a');
    expect(why(next)).toBe('admitted');
    at.send(next);
    at.answer(next, response(200));
    expect(at.busy).toBe(0);
  });
});

test('does not begin a retry that would wait for a connection for too long', () => {
  const at = full(1);
  at.gate.connections.onClaimed('up', 'other');
  at.arriveTimes(20, 'other');
  for (let i = 0; i < 4; i += 1) {
    at.pass(100);
    at.gate.connections.onReleased('up', 'other', 100);
    at.gate.connections.onClaimed('up', 'other');
    serveOne(at);
  }
  const retry = { reason: 'status_5xx', delay: 10, source: 'backoff', usesBudget: true, memory: 0 } as const;
  const [flooding, calm] = [at.arrive('other'), at.arrive('calm')];
  expect(why(flooding)).toBe('queue_timeout');
  expect(at.gate.retries.reserve(calm.ticket, retry, at.now + 60_000, at.now)).toBeUndefined();
  expect(at.gate.retries.reserve(calm.ticket, retry, at.now + 100, at.now)).toBe('deadline');
});

describe('free connections', () => {
  test('keep no request waiting while the upstream is blocked, however slowly its probes release theirs', () => {
    const at = new ConnectionLimitedGate(200, { queue: { maxWait: 60_000, maxDepth: 10_000 } });
    for (let i = 0; i < 100; i += 1) {
      const guest = at.arrive('a');
      at.send(guest);
      at.answer(guest);
      at.pass(20);
    }
    // No response comes for 3.6 s, and 50 requests a second arrive: fewer than there are connections.
    const arrived: WaitingRequest[] = [];
    let failed = at.admitted.length;
    for (let i = 0; i < 180; i += 1) {
      arrived.push(at.arrive('a'));
      for (; failed < at.admitted.length; failed += 1) {
        at.send(at.admitted[failed]!);
        at.answer(at.admitted[failed]!, failure('connect', false));
      }
      at.pass(20);
    }
    expect(at.gate.view(at.now).limits).toMatchObject([{ state: 'blocked' }]);
    expect(arrived.filter((guest) => why(guest) !== undefined && why(guest) !== 'admitted')).toEqual([]);
    expect(arrived.filter(waits).length).toBeGreaterThan(60);
  });
});

describe('a burst of fast requests beside slow ones of another client that use most connections', () => {
  /** Of ten connections, eight carry requests of four seconds. Two fast requests, of 20 ms, have ended before a thousand slow ones. */
  const besideSlow = (): ConnectionLimitedGate => {
    const at = full(10);
    const { connections } = at.gate;
    for (let i = 0; i < 10; i += 1) connections.onClaimed('up', 'flood');
    for (let i = 0; i < 1000; i += 1) {
      connections.onReleased('up', 'flood', i < 2 ? 20 : 4000);
      connections.onClaimed('up', 'flood');
    }
    return at;
  };

  test('waits, because its requests may be as fast as earlier ones', () => {
    const at = besideSlow();
    const burst = Array.from({ length: 50 }, (_, i) => at.arrive(`client ${i}`));
    expect(burst.filter(waits)).toHaveLength(50);
  });

  test('is refused at once after requests have waited without success, until a fast one ends again', () => {
    const at = besideSlow();
    at.arrive('client');
    at.pass(2000);
    const burst = (): number => Array.from({ length: 50 }, (_, i) => at.arrive(`client ${i}`)).filter(waits).length;
    expect(burst()).toBeLessThan(10);
    at.pass(2000);
    at.gate.connections.onReleased('up', 'client', 20);
    expect(burst()).toBe(50);
  });
});

describe('a burst of fast requests after a client has aborted all of its own requests', () => {
  /** Of 16 connections, ten are used by GETs that their client aborts after 700 ms, again and again. */
  const besideAborts = (answered: number): ConnectionLimitedGate => {
    const at = new ConnectionLimitedGate(16);
    for (const guest of at.arriveTimes(10, 'aborts')) at.send(guest);
    const { connections } = at.gate;
    for (let i = 0; i < 10; i += 1) connections.onClaimed('up', 'aborts');
    for (let i = 0; i < 40; i += 1) {
      connections.onReleased('up', 'aborts', 700, true);
      connections.onClaimed('up', 'aborts');
    }
    for (let i = 0; i < answered; i += 1) {
      connections.onClaimed('up', 'calm');
      connections.onReleased('up', 'calm', 500);
    }
    return at;
  };
  const refused = (at: ConnectionLimitedGate): number =>
    Array.from({ length: 60 }, (_, i) => why(at.arrive(`client ${i}`))).filter((each) => each === 'queue_timeout')
      .length;

  test('waits, because an aborted request does not show how long the upstream takes', () => {
    expect(refused(besideAborts(0))).toBe(0);
    expect(refused(besideAborts(1))).toBe(0);
  });

  test('is refused at once beyond what the connections serve in time, once answered requests show how long they take', () => {
    expect(refused(besideAborts(40))).toBeGreaterThan(10);
  });
});

describe('the Retry-After of a refusal while no connection comes free', () => {
  const retryAfterOf = ({ admission }: WaitingRequest) =>
    admission?.kind === 'refused' ? admission.retryAfterMs : undefined;

  /** Responses took 50 ms; now all connections are held by attempts that hang. */
  const hanging = (): ConnectionLimitedGate => {
    const at = full(2);
    for (const holder of ['flood', 'flood']) at.gate.connections.onClaimed('up', holder);
    for (let i = 0; i < 10; i += 1) {
      at.gate.connections.onReleased('up', 'flood', 50);
      at.gate.connections.onClaimed('up', 'flood');
    }
    return at;
  };

  test('doubles the time without a free connection, instead of naming the next second', () => {
    const at = hanging();
    const demands: number[] = [];
    while (at.now < 20_000) {
      const guest = at.arrive('calm');
      while (waits(guest)) at.pass(1000);
      const wait = retryAfterOf(guest) ?? Number.NaN;
      demands.push(Math.round(wait / 1000));
      at.pass(Math.max(1, wait));
    }
    expect(demands).toEqual([1, 4, 10]);
  });

  test('is short if a connection came free a moment ago', () => {
    const at = hanging();
    at.pass(10_000);
    const waiting = at.arrive('flood');
    expect(serveOne(at)).toBe('flood');
    expect(why(waiting)).toBe('admitted');
    const guest = at.arrive('calm');
    at.pass(1000);
    expect(retryAfterOf(guest)).toBeLessThan(1200);
  });
});
