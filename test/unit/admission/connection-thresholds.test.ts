import { describe, expect, test } from 'vitest';
import type { WaitingRequest } from '../../support/core/connection-limited-gate.ts';
import { ConnectionLimitedGate } from '../../support/core/connection-limited-gate.ts';
import { limitedTo } from '../../support/core/policy-builders.ts';

const why = ({ admission }: WaitingRequest) => (admission?.kind === 'refused' ? admission.why : admission?.kind);
const retryAfterOf = ({ admission }: WaitingRequest) =>
  admission?.kind === 'refused' ? admission.retryAfterMs : undefined;
const patient = { queue: { maxWait: 60_000, maxDepth: 1000 } };

function start(connections: number, upstream = {}): ConnectionLimitedGate {
  const at = new ConnectionLimitedGate(connections, upstream);
  at.tracksAttempts = true;
  return at;
}

/** Requests arrive one by one; those that are admitted are sent at once. */
function ask(at: ConnectionLimitedGate, count: number, client: string): WaitingRequest[] {
  return Array.from({ length: count }, () => {
    const guest = at.arrive(client);
    if (why(guest) === 'admitted') at.send(guest);
    return guest;
  });
}

/** Answers a request, and sends those that are admitted as a result. */
function answer(at: ConnectionLimitedGate, guest: WaitingRequest): WaitingRequest[] {
  const before = at.admitted.length;
  at.answer(guest);
  const next = at.admitted.slice(before);
  for (const each of next) at.send(each);
  return next;
}

const admitted = (guests: WaitingRequest[]): WaitingRequest[] => guests.filter((each) => why(each) === 'admitted');

/** A client has asked for 40 of 32 connections, after another one had asked for one and had it answered. */
function besideActive(upstream: object = patient): { at: ConnectionLimitedGate; greedy: WaitingRequest[] } {
  const at = start(32, upstream);
  answer(at, ask(at, 1, 'calm')[0]!);
  return { at, greedy: ask(at, 40, 'greedy') };
}

describe('a client with more than its share of the connections', () => {
  test('leaves some free while others are active, though none of them waits', () => {
    const { at, greedy } = besideActive();
    expect(admitted(greedy)).toHaveLength(29);
    expect(admitted(ask(at, 3, 'calm'))).toHaveLength(3);
    expect(admitted(ask(at, 1, 'calm'))).toHaveLength(0);
  });

  test('may have all of them if no other is active', () => {
    const at = start(32);
    expect(admitted(ask(at, 40, 'greedy'))).toHaveLength(32);
  });

  test('gets those that it releases itself, and none that others release', () => {
    const { at, greedy } = besideActive();
    const [calm] = ask(at, 1, 'calm');
    expect(answer(at, calm!)).toEqual([]);
    expect(answer(at, greedy[0]!).map(({ client }) => client)).toEqual(['greedy']);
    expect(admitted(greedy)).toHaveLength(30);
  });

  test('gets the rest once others have not asked for four seconds, though nothing else happens', () => {
    const { at, greedy } = besideActive();
    at.pass(3999);
    expect(admitted(greedy)).toHaveLength(29);
    at.pass(1);
    expect(admitted(greedy)).toHaveLength(32);
    expect(greedy.find(({ at: time }) => time > 0)?.at).toBe(4000);
  });

  test('waits on if others have asked in the meantime', () => {
    const { at, greedy } = besideActive();
    at.pass(3000);
    answer(at, ask(at, 1, 'calm')[0]!);
    at.pass(3999);
    expect(admitted(greedy)).toHaveLength(29);
    at.pass(1);
    expect(admitted(greedy)).toHaveLength(32);
  });

  test('shares with another greedy one', () => {
    const at = start(32, patient);
    answer(at, ask(at, 1, 'calm')[0]!);
    for (let i = 0; i < 40; i += 1) for (const client of ['a', 'b']) ask(at, 1, client);
    expect(['a', 'b'].map((client) => at.admitted.filter((each) => each.client === client).length)).toEqual([16, 15]);
    expect(admitted(ask(at, 2, 'calm'))).toHaveLength(1);
  });

  test('and many clients that have their share leave none unused', () => {
    const at = start(32, patient);
    const clients = Array.from({ length: 4 }, (_, i) => `client ${i}`);
    for (let i = 0; i < 8; i += 1) for (const client of clients) ask(at, 1, client);
    expect(at.busy).toBe(32);
  });

  test('reserves no more of them for requests that are not sent yet', () => {
    const at = start(32, patient);
    answer(at, ask(at, 1, 'calm')[0]!);
    expect(admitted(at.arriveTimes(40, 'greedy'))).toHaveLength(29);
  });

  test.each(['upstream', 'client'] as const)(
    'waits for tokens first, and lets others pass (limits per %s)',
    (scope) => {
      const { at, greedy } = besideActive({ ...patient, ...limitedTo(100), scope });
      for (let i = 0; i < 60; i += 1) {
        const before = at.admitted.length;
        at.pass(10);
        for (const each of at.admitted.slice(before)) at.send(each);
      }
      expect(admitted(greedy)).toHaveLength(29);
      const [calm] = ask(at, 1, 'calm');
      expect(why(calm!)).toBe('admitted');
      expect(answer(at, calm!)).toEqual([]);
      at.pass(20);
      expect(answer(at, greedy[0]!).map(({ client }) => client)).toEqual(['greedy']);
    },
  );
});

describe('the wait of a client that leaves free connections to others', () => {
  /** Its requests take 10 s, those of others 20 ms. */
  function learned(): ConnectionLimitedGate {
    const { at } = besideActive({ queue: { maxWait: 1000, maxDepth: 1000 } });
    for (let round = 0; round < 2; round += 1) {
      for (let i = 0; i < 500; i += 1) {
        const [calm] = ask(at, 1, 'calm');
        at.pass(20);
        answer(at, calm!);
      }
      for (const greedy of at.admitted.filter(({ client }) => client === 'greedy').slice(29 * round)) {
        answer(at, greedy);
        ask(at, 1, 'greedy');
      }
    }
    return at;
  }

  test('follows from its own service time', () => {
    const at = learned();
    const guests = ask(at, 20, 'greedy');
    // 29 connections of 10 s each: 2.9 requests a second, of which two or three fit into a second.
    expect(guests.filter((each) => why(each) === undefined)).toHaveLength(2);
    const last = retryAfterOf(guests.at(-1)!) ?? 0;
    expect(last).toBeGreaterThan(5000);
    expect(last).toBeLessThan(12_000);
    const details = at.gate.decisionDetails(guests.at(-1)!.ticket, at.now);
    expect(details).toMatchObject({ waitsForConnection: true, leavesConnections: true, returnSlot: 'yielding' });
  });

  test('does not make the return of others later', () => {
    const at = learned();
    ask(at, 200, 'greedy');
    expect(admitted(ask(at, 3, 'calm'))).toHaveLength(3);
    const late = ask(at, 1, 'other')[0]!;
    expect(why(late)).toBeUndefined();
    at.pass(1000);
    expect(why(late)).toBe('queue_timeout');
    expect(retryAfterOf(late)).toBeLessThan(3000);
  });
});
