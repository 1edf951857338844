/** Members of one limit: a client, or the clients of one address, have one share of it, at whatever members and endpoints they wait. */
import { describe, expect, test } from 'vitest';
import type { ImpatientRequest, PoliteRun } from '../../support/core/polite-clients.ts';
import { runPoliteClients } from '../../support/core/polite-clients.ts';

const RATE = 20;
const MEASURED = { from: 10_000, until: 50_000 };
const SECONDS = (MEASURED.until - MEASURED.from) / 1000;

function run(
  sharing: PoliteRun['sharing'],
  given: Pick<PoliteRun, 'clients' | 'impatient' | 'isNested' | 'keysOfAddress' | 'roaming'>,
) {
  const startAt = given.clients.map(() => 0);
  const results = runPoliteClients({ sharing, rate: RATE, startAt, ...MEASURED, seed: 1, ...given });
  const perSecond = (of: 'served' | 'impatientServed' | 'keysServed' | 'roamingServed'): number =>
    results.reduce((sum, result) => sum + result[of], 0) / SECONDS;
  return {
    polite: perSecond('served'),
    impatient: perSecond('impatientServed'),
    keys: perSecond('keysServed'),
    roaming: perSecond('roamingServed'),
  };
}

describe.each(['workers', 'replicas'] as const)('%s', (sharing) => {
  test.each([1, 50])('a client with requests to %d endpoints has one share of the outer limit', (endpoints) => {
    const impatient = Array.from(
      { length: 50 },
      (_, i): ImpatientRequest => ({ member: 0, client: 'one', endpoint: `endpoint ${i % endpoints}` }),
    );
    const { polite, impatient: its } = run(sharing, { clients: [0, 5], isNested: true, impatient });
    expect(its).toBeLessThan(1.1 * (RATE / 6));
    expect(polite).toBeGreaterThan(0.98 * (RATE - RATE / 6));
    expect(polite + its).toBeGreaterThan(0.97 * RATE);
  });

  test('keys of one address that wait at four members have one share', () => {
    const impatient = Array.from(
      { length: 40 },
      (_, i): ImpatientRequest => ({ member: i % 4, client: `key ${i}`, address: 'address' }),
    );
    const { polite, impatient: its } = run(sharing, { clients: [5, 0, 0, 0], impatient });
    expect(its).toBeLessThan(1.1 * (RATE / 6));
    expect(polite).toBeGreaterThan(0.98 * (RATE - RATE / 6));
    expect(polite + its).toBeGreaterThan(0.97 * RATE);
  });

  test.each([
    { keysOfAddress: [2, 2], clients: [10, 10] },
    { keysOfAddress: [10, 1], clients: [10, 10] },
    { keysOfAddress: [1, 1], clients: [2, 2] },
    { keysOfAddress: [4], clients: [20] },
  ])(
    'keys of one address that return on time have one share: $keysOfAddress keys at members of $clients clients',
    (given) => {
      const { polite, keys } = run(sharing, given);
      const fair = RATE / (1 + given.clients.reduce((sum, count) => sum + count, 0));
      expect(keys).toBeGreaterThan(0.9 * fair);
      expect(keys).toBeLessThan(1.25 * fair);
      expect(polite + keys).toBeGreaterThan(0.99 * RATE);
    },
  );

  test('clients that return to any member have about the share of clients that return to the same member', () => {
    const { polite, roaming } = run(sharing, { clients: [10, 10], roaming: 10 });
    expect(roaming).toBeGreaterThan(0.85 * (RATE / 3));
    expect(roaming).toBeLessThan(1.1 * (RATE / 3));
    expect(polite + roaming).toBeGreaterThan(0.99 * RATE);
  });

  test.each([[[2, 2]], [[3, 1]], [[4, 0]]])(
    'a client with a key of its own at two members has one share, beside %j others',
    (clients) => {
      const impatient = Array.from(
        { length: 4 },
        (_, i): ImpatientRequest => ({ member: i % 2, client: 'one', address: 'address' }),
      );
      const { polite, impatient: its } = run(sharing, { clients, impatient });
      expect(its).toBeGreaterThan(0.9 * (RATE / 5));
      expect(its).toBeLessThan(1.1 * (RATE / 5));
      expect(polite + its).toBeGreaterThan(0.97 * RATE);
    },
  );

  test('keys of one address that return early at one member have no more than one share', () => {
    const impatient = Array.from(
      { length: 4 },
      (_, i): ImpatientRequest => ({ member: 1, client: `key ${i}`, address: 'address' }),
    );
    const { polite, impatient: its } = run(sharing, { clients: [5, 0], impatient });
    expect(its).toBeLessThan(1.1 * (RATE / 6));
    expect(its).toBeGreaterThan(0.9 * (RATE / 6));
    expect(polite + its).toBeGreaterThan(0.97 * RATE);
  });
});
