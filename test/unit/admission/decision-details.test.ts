import { describe, expect, test } from 'vitest';
import { ConnectionLimitedGate } from '../../support/core/connection-limited-gate.ts';

/** Only an operator's pin delays the requests. */
function pinned(connections: number, rate: number): ConnectionLimitedGate {
  const at = new ConnectionLimitedGate(connections);
  for (const limit of at.gate.limits(at.now)) {
    limit.setOverride({ pinnedRate: rate, blockedUntil: Number.NEGATIVE_INFINITY }, 0);
  }
  return at;
}

const namesConnection = (at: ConnectionLimitedGate, client: string): boolean => {
  const { ticket } = at.arrive(client);
  return at.gate.decisionDetails(ticket, at.now).waitsForConnection;
};

describe('the decision names the connection as the resource waited for', () => {
  test('but not while connections are free and the next token is due', () => {
    const at = pinned(10, 20);
    at.arriveTimes(3, 'a');
    at.now += 60; // and the gate has not been called since
    expect([...at.gate.limits(at.now)].map(({ meter }) => meter.delay(at.now))).toEqual([0]);
    expect(namesConnection(at, 'b')).toBe(false);
  });

  test('but not while a token is lacking too', () => {
    const at = pinned(1, 20);
    at.send(at.arrive('a'));
    expect(namesConnection(at, 'b')).toBe(false);
  });

  test('if all connections are in use and a token is available', () => {
    const at = new ConnectionLimitedGate(2);
    for (const guest of at.arriveTimes(2, 'a')) at.send(guest);
    expect(namesConnection(at, 'b')).toBe(true);
  });

  test.each(['client', 'upstream'] as const)('if limits are per %s, also after the wait has expired', (scope) => {
    const at = new ConnectionLimitedGate(1, { scope });
    at.send(at.arrive('a'));
    const late = at.arrive('b', 100);
    expect(at.gate.decisionDetails(late.ticket, at.now).waitsForConnection).toBe(true);
    at.pass(200);
    expect(late.admission).toMatchObject({ kind: 'refused', why: 'queue_timeout' });
    expect(at.gate.decisionDetails(late.ticket, at.now).waitsForConnection).toBe(true);
  });
});
