import { describe, expect, test } from 'vitest';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { loadScenario } from '../../../src/simulator/scenario-file/load-scenario.ts';
import { simulateScenario } from '../../../src/simulator/simulate-scenario.ts';

function load(quotas: string, rest = '') {
  const text = `duration: 1h
upstream: {limit: {kind: unlimited}}
clients: [{rate: 1/s}]
policy: {quotas: ${quotas}}
${rest}`;
  return loadScenario(text, 'scenario.yaml', { env: {}, readFile: () => '' });
}

function simulate(quotas: string) {
  const loaded = load(quotas);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return simulateScenario('quotas', loaded.value, 1).report.counts;
}

describe('a scenario with quotas', () => {
  test('sends no more than the quota of each hour', () => {
    // The run lasts from the beginning of an hour to its end.
    const { successes } = simulate('[{limit: 600, per: hour}]');
    expect(successes).toBe(600);
  });

  test('refuses several replicas', () => {
    const loaded = load('[{limit: 600, per: hour}]', 'replicas: 2');
    expect(loaded.kind === 'mistakes' ? formatMistakes(loaded.mistakes) : '').toContain(
      'policy.quotas: not supported with several replicas, a lease or a pool, which would each count their own (did you mean replicas: 1?)',
    );
  });
});
