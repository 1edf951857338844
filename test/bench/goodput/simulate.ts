import { readFile } from '../../../src/cli/read-file.ts';
import { compilePlan, compileUpstreams } from '../../../src/config/compile/compile-policy.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { SimulationReport } from '../../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../../src/simulator/run-scenario.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../src/simulator/scenario.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { tidegateConfig } from './configs.ts';
import type { LimitKind } from './kinds.ts';
import { capacity } from './kinds.ts';
import { TEN_CLIENTS } from '../../support/core/ten-clients.ts';

/** One-way latency over loopback, including event loops. */
const NETWORK: Millis = 0.5;

export interface SimulatedRun {
  readonly kind: LimitKind;
  readonly clients: number;
  /** Offered ÷ capacity. */
  readonly overload: number;
  readonly warmup: Millis;
  readonly span: Millis;
}

/** Simulates the same clients, configuration and upstream; one report for each seed. */
export function simulate(run: SimulatedRun, seeds: readonly number[]): readonly SimulationReport[] {
  const config = readConfig();
  const [settings] = compileUpstreams(config);
  const [upstream] = Object.values(config.upstreams);
  if (settings === undefined || upstream === undefined) throw new Error('the configuration names an upstream');
  const { maxTracked } = config.clients;
  const scenario = scenarioOf(run, { ...settings, plan: compilePlan(upstream.retry, upstream, config.mode) });
  return seeds.map((seed) =>
    runScenario({
      scenario,
      seed,
      makeStore: (_, random, listen) =>
        new MemoryStore({ upstreams: [{ ...settings, name: UPSTREAM_NAME }], maxTracked, random, listen }),
    }),
  );
}

function scenarioOf(run: SimulatedRun, policy: Scenario['policy']): Scenario {
  const { kind, clients, overload, warmup, span } = run;
  return {
    name: kind.name,
    duration: warmup + span,
    warmup,
    upstream: kind.upstream,
    networkLatency: NETWORK,
    clients: [{ ...TEN_CLIENTS, count: clients, rate: (overload * capacity(kind)) / clients }],
    replicas: 1,
    shared: false,
    pauses: [],
    policy,
  };
}

function readConfig(): Config {
  const loaded = loadConfig(tidegateConfig('http://127.0.0.1', 1), 'tidegate.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config;
}
