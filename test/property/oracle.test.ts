/** No client learns of its write what is not true, and none is carried out twice. */
import { describe, expect, test } from 'vitest';
import { contradiction } from '../support/oracle/judge.ts';
import { runIntents } from '../support/oracle/intents.ts';

const RUNS = Number(process.env['TIDEGATE_ORACLE'] ?? 100_000) / 1000;

describe('what is told of a hundred thousand intents is true', () => {
  for (const concurrent of ['wait', 'refuse', 'pass'] as const) {
    for (const hasTtl of [true, false]) {
      test(`concurrent: ${concurrent}, ${hasTtl ? 'with' : 'without'} a ttl`, () => {
        const wrong: string[] = [];
        let told = 0;
        for (let run = 0; run < RUNS / 6; run += 1) {
          const { contradictions, told: counts } = runIntents({ seed: 1000 + run, intents: 1000, concurrent, hasTtl });
          wrong.push(...contradictions);
          told += Object.values(counts).reduce((sum, count) => sum + count, 0);
          for (const kind of ['done', 'declined', 'unknown', 'not done', 'nothing'] as const) {
            expect(counts[kind]).toBeGreaterThan(0);
          }
        }
        expect(told).toBeGreaterThan(2000);
        expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
      }, 300_000);
    }
  }
});

describe('the judge', () => {
  const TRUTH = { times: 0, isOpen: false, isKnown: false };

  test.each([
    ['done', {}, 'told as done, and it is not'],
    ['done', { times: 1 }, undefined],
    ['done', { times: 2 }, 'carried out 2 times'],
    ['nothing', { times: 2 }, 'carried out 2 times'],
    ['declined', { times: 1 }, 'told as declined, and it is done'],
    ['not done', { times: 1 }, 'told as not done, and it is'],
    ['not done', { times: 1, isKnown: true }, undefined],
    ['not done', {}, undefined],
    ['unknown', {}, 'told as unknown, and it is certain'],
    ['unknown', { isOpen: true }, undefined],
    ['expired', {}, 'told as answered, and its client has no answer'],
    ['in use', { times: 1 }, undefined],
  ] as const)('%s, of %o: %s', (told, truth, verdict) => {
    expect(contradiction(told, { ...TRUTH, ...truth })).toBe(verdict);
  });
});
