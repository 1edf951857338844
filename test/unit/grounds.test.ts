import { describe, expect, test } from 'vitest';
import { Connected } from '../support/connected.ts';

/** Nothing but an operator's pin holds them back. */
function pinned(connections: number, rate: number): Connected {
  const at = new Connected(connections);
  for (const limit of at.gate.limits(at.now)) limit.steer({ pinned: rate, blockedUntil: Number.NEGATIVE_INFINITY }, 0);
  return at;
}

const forRoom = (at: Connected, client: string): boolean => {
  const { ticket } = at.arrive(client);
  return at.gate.grounds(ticket, at.now).forRoom;
};

describe('a connection is what is waited for', () => {
  test('not while connections are free, though the next token is due and others wait for it', () => {
    const at = pinned(10, 20);
    at.arriveTimes(3, 'a');
    at.now += 60; // and nobody has looked yet
    expect([...at.gate.limits(at.now)].map(({ meter }) => meter.delay(at.now))).toEqual([0]);
    expect(forRoom(at, 'b')).toBe(false);
  });

  test('not while a token is lacking too', () => {
    const at = pinned(1, 20);
    at.send(at.arrive('a'));
    expect(forRoom(at, 'b')).toBe(false);
  });

  test('when all are in use and a token is there', () => {
    const at = new Connected(2);
    for (const guest of at.arriveTimes(2, 'a')) at.send(guest);
    expect(forRoom(at, 'b')).toBe(true);
  });

  test.each(['client', 'upstream'] as const)(
    'where limits are of a(n) %s, after it was waited for in vain too',
    (scope) => {
      const at = new Connected(1, { scope });
      at.send(at.arrive('a'));
      const late = at.arrive('b', 100);
      expect(at.gate.grounds(late.ticket, at.now).forRoom).toBe(true);
      at.pass(200);
      expect(late.told).toMatchObject({ kind: 'refused', why: 'queue_timeout' });
      expect(at.gate.grounds(late.ticket, at.now).forRoom).toBe(true);
    },
  );
});
