/** Members of one limit: a client, or the clients of one address, have one share of it, wherever and at whatever they wait. */
import { describe, expect, test } from 'vitest';
import type { ImpatientRequest, PoliteRun } from '../../support/core/polite-clients.ts';
import { runPoliteClients } from '../../support/core/polite-clients.ts';

const RATE = 20;
const MEASURED = { from: 10_000, until: 70_000 };
const SECONDS = (MEASURED.until - MEASURED.from) / 1000;

function run(sharing: PoliteRun['sharing'], given: Pick<PoliteRun, 'clients' | 'impatient' | 'isNested'>) {
  const startAt = given.clients.map(() => 0);
  const results = runPoliteClients({ sharing, rate: RATE, startAt, ...MEASURED, seed: 1, ...given });
  const perSecond = (of: 'served' | 'impatientServed'): number =>
    results.reduce((sum, result) => sum + result[of], 0) / SECONDS;
  return { polite: perSecond('served'), impatient: perSecond('impatientServed') };
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

  test('keys of one address that wait at one member have a share of their own address’s size there', () => {
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
