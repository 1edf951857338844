/** `tidegate lab fit LOG`: what would other policies have made of yesterday's traffic? */
import { loadScenario } from '../../simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../config/load/mistakes.ts';
import type { ScenarioConfig } from '../../simulator/scenario-file/scenario-schema.ts';
import { unreadable } from '../../config/load/serve-settings.ts';
import type { Surroundings } from '../../config/load/substitute.ts';
import type { Experiment } from '../experiment.ts';
import { retell } from '../experiment.ts';
import type { Candidate } from '../fit/replay-candidate.ts';
import { Direct, NO_RETRIES } from '../fit/direct-clients.ts';
import { Fit } from '../fit/fit-experiment.ts';
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { proxyWith } from './proxy-candidate.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { scenarioFile, scenarioNames } from '../../cli/bundled-scenarios.ts';
import type { StudySpec } from './lab-arguments.ts';
import type { Told } from './study-report.ts';
import { StudyError } from './study-error.ts';
import type { LogFormat } from '../fit/log/log-format.ts';
import { LogFile } from '../fit/log/log-file.ts';
import { recogniseLog } from '../fit/log/detect-log-format.ts';
import { tellFit } from '../fit/report/format-fit.ts';

/** Sends in all of clients that retry by themselves, as of the proxy. */
const ATTEMPTS = 4;
const STRATEGIES: readonly StrategyName[] = ['fixed', 'exponential', 'full-jitter', 'decorrelated-jitter'];
/** The proxy's policy unless told otherwise: only its policy is used. */
const DEFAULTS = 'upstream: {limit: {kind: unlimited}}\nclients: [{rate: 1/s}]\npolicy: {}\n';

/** @throws StudyError where the log or a policy cannot be read */
export function studyFit(
  { log, policies, rate, burst }: Extract<StudySpec, { study: 'fit' }>,
  seed: number,
  surroundings: Surroundings,
): Experiment<Told> {
  const format = readFormat(log);
  const proxies = [
    { name: 'tidegate', config: load('tidegate', DEFAULTS, surroundings) },
    ...policies.map((policy) => ({ name: `tidegate: ${policy}`, config: loadFile(policy, surroundings) })),
  ];
  const candidates = (upstream: UpstreamSpec): Candidate[] => {
    const direct = { attempts: ATTEMPTS, upstream, seed };
    return [
      new Direct({ ...direct, name: NO_RETRIES, backOff: undefined }),
      ...STRATEGIES.map((strategy) => new Direct({ ...direct, name: strategy, backOff: makeBackOff({ strategy }) })),
      ...proxies.map(({ name, config }) => proxyWith(name, config, upstream, seed)),
    ];
  };
  const known = { rate, burst };
  const fit = new Fit({ open: () => new LogFile(log, format), known, candidates });
  return retell(fit, (fitted) => tellFit(log, fitted, known));
}

function readFormat(log: string): LogFormat {
  const format = recogniseLog(log);
  if ('message' in format) throw new StudyError(format.message);
  return format;
}

/** A scenario, by file or by name: its policy is what is wanted of it. */
function loadFile(word: string, surroundings: Surroundings): ScenarioConfig {
  const file = scenarioNames().includes(word) ? scenarioFile(word) : word;
  let text: string;
  try {
    text = surroundings.readFile(file);
  } catch (error) {
    throw new StudyError(formatMistakes([unreadable(file, error)]));
  }
  return load(file, text, surroundings);
}

function load(file: string, text: string, surroundings: Surroundings): ScenarioConfig {
  const read = loadScenario(text, file, surroundings);
  if (read.kind === 'mistakes') throw new StudyError(formatMistakes(read.mistakes));
  return read.value;
}
