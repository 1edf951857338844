import { formatEffectiveConfig } from '../../config/load/effective-config.ts';
import type { LoadResult } from '../../config/load/load-config.ts';
import { loadConfig } from '../../config/load/load-config.ts';
import type { Mistake } from '../../config/load/mistakes.ts';
import { formatMistakes, formatWarnings } from '../../config/load/mistakes.ts';
import { unreadableFile } from '../../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import { pathKey } from '../../config/load/source-map.ts';
import type { EndpointProbe } from '../../process/probes/probe-upstreams.ts';
import { describeApiKeys } from './describe-api-keys.ts';
import { describeLimits } from './describe-limits.ts';
import { describeProviders, findUncertainSettings, markUncertain } from './describe-providers.ts';
import { listWorstCases } from './worst-cases.ts';

export interface CheckFlags {
  /** Also print every setting in effect. */
  readonly full: boolean;
}

export interface CheckReport {
  /** Mistakes are written to standard error, a report to standard output. */
  readonly kind: 'mistakes' | 'report';
  /** Lines, each with a newline. Valid YAML with `full`, if the configuration is valid: the report is in comments. */
  readonly text: string;
  readonly exitCode: 0 | 1;
}

type MistakesReport = CheckReport & { readonly kind: 'mistakes' };
type ValidConfig = Extract<LoadResult, { readonly kind: 'ok' }>;

/**
 * `tidegate check FILE`: prints all mistakes; or the verdict with the warnings, then worst cases, limits, API keys and presets, and last,
 * with `full`, every setting in effect.
 */
export function runCheck(file: string, flags: CheckFlags, environment: ConfigEnvironment): CheckReport {
  const loaded = load(file, environment);
  if (loaded.kind === 'mistakes') return loaded;
  return { kind: 'report', text: formatReport(file, loaded, flags, environment), exitCode: 0 };
}

/** `tidegate check FILE --probe`: as `runCheck`, and opens a connection to each endpoint; exits with 1 if one accepts none. */
export async function runCheckWithProbe(
  file: string,
  flags: CheckFlags,
  environment: ConfigEnvironment,
): Promise<CheckReport> {
  const loaded = load(file, environment);
  if (loaded.kind === 'mistakes') return loaded;
  const { probeUpstreams } = await import('../../process/probes/probe-upstreams.ts');
  const probes = await probeUpstreams(loaded.config);
  return {
    kind: 'report',
    text: formatReport(file, loaded, flags, environment, probes),
    exitCode: probes.some(({ problem }) => problem !== undefined) ? 1 : 0,
  };
}

function load(file: string, environment: ConfigEnvironment): ValidConfig | MistakesReport {
  let text: string;
  try {
    text = environment.readFile(file);
  } catch (error) {
    return reportMistakes([unreadableFile(file, error)]);
  }
  const loaded = loadConfig(text, file, environment);
  return loaded.kind === 'ok' ? loaded : reportMistakes(loaded.mistakes);
}

function reportMistakes(mistakes: readonly Mistake[]): MistakesReport {
  return { kind: 'mistakes', text: `${formatMistakes(mistakes)}\n`, exitCode: 1 };
}

function formatReport(
  file: string,
  { config, substituted, isWritten, warnings: configWarnings }: ValidConfig,
  { full }: CheckFlags,
  { readFile }: ConfigEnvironment,
  probes: readonly EndpointProbe[] = [],
): string {
  const worstCases = listWorstCases(config);
  const warnings = [
    ...(configWarnings.length > 0 ? formatWarnings(configWarnings).split('\n') : []),
    ...worstCases.warnings.map((warning) => `warning: ${warning}`),
  ];
  const uncertain = findUncertainSettings(config, readFile, isWritten);
  const report = [
    `${file}: valid, ${describeCount(warnings.length)}${describeUnreachable(probes)}`,
    ...warnings,
    ...formatSection('Endpoints', describeProbes(probes, substituted)),
    ...formatSection('Worst cases', worstCases.lines),
    ...formatSection('Limits', describeLimits(config)),
    ...formatSection('API keys', describeApiKeys(config, readFile, Date.now())),
    ...formatSection('Providers', describeProviders(config, readFile, uncertain)),
  ];
  if (!full) return [...report, '', `${FULL_HINT}\n`].join('\n');
  const comments = [...report, ''].map((line) => `# ${line}`.trimEnd()).join('\n');
  return `${comments}\n${formatEffectiveConfig(config, substituted, markUncertain(uncertain))}`;
}

const FULL_HINT = 'check --full also prints every setting in effect, with defaults and presets.';

function describeCount(warnings: number): string {
  if (warnings === 0) return 'no warnings';
  return warnings === 1 ? '1 warning' : `${warnings} warnings`;
}

function describeUnreachable(probes: readonly EndpointProbe[]): string {
  const count = probes.filter(({ problem }) => problem !== undefined).length;
  if (count === 0) return '';
  return count === 1 ? ', 1 endpoint unreachable' : `, ${count} endpoints unreachable`;
}

/** A url from a variable is printed as its reference. */
function describeProbes(probes: readonly EndpointProbe[], substituted: ReadonlyMap<string, string>): string[] {
  return probes.map(({ upstream, endpoint, path, problem }) => {
    const name = substituted.get(pathKey(path)) ?? endpoint;
    return `${upstream} ${name}: ${problem === undefined ? 'reachable' : `unreachable: ${problem.text}`}`;
  });
}

/** No line for an empty section. */
function formatSection(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
}
