/** `tidegate lab fit LOG`: replays a log through other policies. */
import { loadScenario } from '../../simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../config/load/mistakes.ts';
import type { ScenarioConfig } from '../../simulator/scenario-file/scenario-schema.ts';
import { unreadableFile } from '../../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import type { Experiment } from '../experiment.ts';
import { mapResult } from '../experiment.ts';
import type { ReplayCandidate } from '../fit/replay-candidate.ts';
import { DirectClients, NO_RETRIES } from '../fit/direct-clients.ts';
import { FitExperiment } from '../fit/fit-experiment.ts';
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { makeProxyCandidate } from './proxy-candidate.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { scenarioFile, scenarioNames } from '../../cli/bundled-scenarios.ts';
import type { StudySpec } from './study-parser.ts';
import type { StudyReport } from './study-report.ts';
import { StudyError } from './study-error.ts';
import type { LogFormat } from '../fit/log/log-format.ts';
import { LogFile } from '../fit/log/log-file.ts';
import { detectLogFormat } from '../fit/log/detect-log-format.ts';
import { formatFit } from '../fit/report/format-fit.ts';

/** Attempts of clients that retry without a proxy; the proxy's default. */
const MAX_ATTEMPTS = 4;
const STRATEGIES: readonly StrategyName[] = ['fixed', 'exponential', 'full-jitter', 'decorrelated-jitter'];
/** The proxy's default policy: only the policy of this scenario is used. */
const DEFAULT_SCENARIO = 'upstream: {limit: {kind: unlimited}}\nclients: [{rate: 1/s}]\npolicy: {}\n';

/** @throws StudyError if the log or a policy cannot be read */
export function studyFit(
  { log, policies, rate, burst }: Extract<StudySpec, { study: 'fit' }>,
  seed: number,
  environment: ConfigEnvironment,
): Experiment<StudyReport> {
  const format = readFormat(log);
  const proxies = [
    { name: 'tidegate', config: parseScenario('tidegate', DEFAULT_SCENARIO, environment) },
    ...policies.map((policy) => ({ name: `tidegate: ${policy}`, config: loadScenarioFile(policy, environment) })),
  ];
  const candidates = (upstream: UpstreamSpec): ReplayCandidate[] => {
    const direct = { attempts: MAX_ATTEMPTS, upstream, seed };
    return [
      new DirectClients({ ...direct, name: NO_RETRIES, backOff: undefined }),
      ...STRATEGIES.map(
        (strategy) => new DirectClients({ ...direct, name: strategy, backOff: makeBackOff({ strategy }) }),
      ),
      ...proxies.map(({ name, config }) => makeProxyCandidate(name, config, upstream, seed)),
    ];
  };
  const known = { rate, burst };
  const fit = new FitExperiment({ openLog: () => new LogFile(log, format), known, candidates });
  return mapResult(fit, (fitted) => formatFit(log, fitted, known));
}

function readFormat(log: string): LogFormat {
  const format = detectLogFormat(log);
  if ('message' in format) throw new StudyError(format.message);
  return format;
}

/** Loads a scenario by file or name, for its policy. */
function loadScenarioFile(word: string, environment: ConfigEnvironment): ScenarioConfig {
  const file = scenarioNames().includes(word) ? scenarioFile(word) : word;
  let text: string;
  try {
    text = environment.readFile(file);
  } catch (error) {
    throw new StudyError(formatMistakes([unreadableFile(file, error)]));
  }
  return parseScenario(file, text, environment);
}

function parseScenario(file: string, text: string, environment: ConfigEnvironment): ScenarioConfig {
  const read = loadScenario(text, file, environment);
  if (read.kind === 'mistakes') throw new StudyError(formatMistakes(read.mistakes));
  return read.value;
}
