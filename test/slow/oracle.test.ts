/** No client gets a wrong report of its write, and no write is executed twice. */
import { describe, expect, test } from 'vitest';
import { contradiction } from '../support/oracle/reported-outcome.ts';
import { TOPOLOGIES } from '../support/oracle/simulated-processes.ts';
import { runIntents } from '../support/oracle/run-intents.ts';

const RUNS = Number(process.env['TIDEGATE_ORACLE'] ?? 100_000) / 1000;

describe('reports of a hundred thousand payment intents are correct, for one process and for processes that are killed at times', () => {
  for (const concurrent of ['wait', 'refuse', 'pass'] as const) {
    for (const [hasTtl, topology] of [true, false].flatMap((ttl) => TOPOLOGIES.map((each) => [ttl, each] as const))) {
      test(`concurrent: ${concurrent}, ${hasTtl ? 'with' : 'without'} a ttl, ${topology}`, () => {
        const wrong: string[] = [];
        let reports = 0;
        const runs = topology === 'three replicas' ? RUNS / 24 : RUNS / 6; // each takes five times as long
        for (let run = 0; run < runs; run += 1) {
          const { contradictions, reported: counts } = runIntents({
            seed: 1000 + run,
            intents: 1000,
            concurrent,
            hasTtl,
            topology,
            endpoints: 1 + (run % 3),
          });
          wrong.push(...contradictions);
          reports += Object.values(counts).reduce((sum, count) => sum + count, 0);
          for (const kind of ['done', 'declined', 'unknown', 'not done', 'nothing'] as const) {
            expect(counts[kind]).toBeGreaterThan(0);
          }
        }
        expect(reports).toBeGreaterThan(2000);
        expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
      }, 300_000);
    }
  }
});

describe('the judgement of a report', () => {
  const TRUTH = { times: 0, isOpen: false, isKnown: false, isInUse: false };

  test.each([
    ['done', {}, 'reported as done, but it is not'],
    ['done', { times: 1 }, undefined],
    ['done', { times: 2 }, 'carried out 2 times'],
    ['nothing', { times: 2 }, 'carried out 2 times'],
    ['declined', { times: 1 }, 'reported as declined, but it is done'],
    ['declined', { times: 1, isKnown: true }, undefined],
    ['not done', { times: 1 }, 'reported as not done, but it is'],
    ['not done', { times: 1, isKnown: true }, undefined],
    ['not done', {}, undefined],
    ['unknown', {}, 'reported as unknown, but it is certain'],
    ['unknown', { isOpen: true }, undefined],
    ['expired', {}, 'reported as answered, but its client has no response'],
    ['in use', { times: 1, isInUse: true }, undefined],
    ['in use', { times: 1 }, 'reported as in use, but no request has the key'],
  ] as const)('of %s, for a write with %o: %s', (observed, truth, verdict) => {
    expect(contradiction(observed, { ...TRUTH, ...truth })).toBe(verdict);
  });
});
