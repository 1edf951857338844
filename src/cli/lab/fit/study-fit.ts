/** `tidegate lab fit LOG`: what would other policies have made of yesterday's traffic? */
import { loadScenario } from '../../../config/load-scenario.ts';
import { formatMistakes } from '../../../config/mistakes.ts';
import type { ScenarioConfig } from '../../../config/scenario-schema.ts';
import { unreadable } from '../../../config/settings.ts';
import type { Surroundings } from '../../../config/substitute.ts';
import type { Experiment } from '../../../lab/experiment.ts';
import { retell } from '../../../lab/experiment.ts';
import type { Candidate } from '../../../lab/fit/candidate.ts';
import { Direct, NO_RETRIES } from '../../../lab/fit/direct.ts';
import { Fit } from '../../../lab/fit/fit.ts';
import type { StrategyName } from '../../../policy/backoff.ts';
import { makeBackOff } from '../../../policy/backoff.ts';
import { proxyWith } from '../../../simulate/replay.ts';
import type { UpstreamSpec } from '../../../sim/upstream.ts';
import { scenarioFile, scenarioNames } from '../../library.ts';
import type { StudySpec } from '../arguments.ts';
import type { Told } from '../told.ts';
import { StudyError } from '../study-error.ts';
import type { LogFormat } from './parse-record.ts';
import { LogFile } from './read-log.ts';
import { recogniseLog } from './recognise-log.ts';
import { tellFit } from './tell-fit.ts';

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
