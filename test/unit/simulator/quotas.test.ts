import { describe, expect, test } from 'vitest';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { loadScenario } from '../../../src/simulator/scenario-file/load-scenario.ts';
import { renderSimulationReport } from '../../../src/cli/render-simulation-report.ts';
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

function loadClasses(classes: string, clients: string, rest = '') {
  const text = `duration: 1h
upstream: {limit: {kind: unlimited}}
clients: ${clients}
policy: {classes: ${classes}}
${rest}`;
  return loadScenario(text, 'scenario.yaml', { env: {}, readFile: () => '' });
}

const mistakesOf = (loaded: ReturnType<typeof loadClasses>): string =>
  loaded.kind === 'mistakes' ? formatMistakes(loaded.mistakes) : '';

describe('a scenario with quotas of clients', () => {
  test('sends no more than the quota of each client and of their class, and reports refusals by client', () => {
    const loaded = loadClasses(
      '{partners: {quota: 1500/hour, perClient: {quota: 600/hour}}}',
      '[{name: partners, class: partners, count: 3, rate: 1/s}, {name: slow, class: partners, rate: 1/m}, {name: others, rate: 1/s}]',
    );
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    const { report } = simulateScenario('classes', loaded.value, 1);
    const [partners, slow, others] = report.groups;
    const text = renderSimulationReport({ title: undefined, report, goals: [] }, 80);
    expect(text).toContain(`partners: ${partners?.refused} beyond a quota (one client: ${partners?.mostRefused})`);
    expect(text).not.toContain('others:');
    expect((partners?.successes ?? 0) + (slow?.successes ?? 0)).toBe(1500);
    expect(partners?.refused).toBe((partners?.offered ?? 0) - (partners?.successes ?? 0));
    expect(partners?.refusedByQuota).toBe(partners?.refused);
    expect(partners?.mostRefused).toBeGreaterThan(2900);
    expect(others).toMatchObject({ refused: 0, refusedByQuota: 0, mostRefused: 0 });
  });

  test('reports a class that is not there, several replicas, and quotas of one name', () => {
    const classes = '{partners: {perClient: {quota: [1/day, 2/day]}}}';
    const text = mistakesOf(loadClasses(classes, '[{rate: 1/s, class: partner}]', 'replicas: 2'));
    expect(text).toContain('clients[0].class: no class of policy.classes has this name (did you mean partners?)');
    expect(text).toContain('policy.classes: not supported with several replicas');
    expect(text).toContain('already has the name day');
  });
});
