import { formatEffectiveConfig } from '../../config/load/effective-config.ts';
import { loadConfig } from '../../config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../config/load/mistakes.ts';
import { unreadableFile } from '../../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import { describeLimits } from './describe-limits.ts';
import { describeProviders, findUncertainSettings, markUncertain } from './describe-providers.ts';
import { listWorstCases } from './worst-cases.ts';

export interface CheckFlags {
  /** Also print every setting in effect. */
  readonly full: boolean;
}

export interface CheckReport {
  /** Lines, each with a newline. Valid YAML with `full`, if the configuration is valid: the report is in comments. */
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/**
 * `tidegate check FILE`: prints all mistakes; or the verdict with the warnings, then worst cases, limits and presets, and last,
 * with `full`, every setting in effect.
 */
export function runCheck(file: string, { full }: CheckFlags, environment: ConfigEnvironment): CheckReport {
  let text: string;
  try {
    text = environment.readFile(file);
  } catch (error) {
    return { text: `${formatMistakes([unreadableFile(file, error)])}\n`, exitCode: 1 };
  }
  const loaded = loadConfig(text, file, environment);
  if (loaded.kind === 'mistakes') return { text: `${formatMistakes(loaded.mistakes)}\n`, exitCode: 1 };
  const { config, substituted, isWritten } = loaded;
  const worstCases = listWorstCases(config);
  const warnings = [
    ...(loaded.warnings.length > 0 ? formatWarnings(loaded.warnings).split('\n') : []),
    ...worstCases.warnings.map((warning) => `warning: ${warning}`),
  ];
  const uncertain = findUncertainSettings(config, environment.readFile, isWritten);
  const report = [
    `${file}: valid, ${describeCount(warnings.length)}`,
    ...warnings,
    ...formatSection('Worst cases', worstCases.lines),
    ...formatSection('Limits', describeLimits(config)),
    ...formatSection('Providers', describeProviders(config, environment.readFile, uncertain)),
  ];
  if (!full) return { text: [...report, '', `${FULL_HINT}\n`].join('\n'), exitCode: 0 };
  const comments = [...report, ''].map((line) => `# ${line}`.trimEnd()).join('\n');
  const settings = formatEffectiveConfig(config, substituted, markUncertain(uncertain));
  return { text: `${comments}\n${settings}`, exitCode: 0 };
}

const FULL_HINT = 'check --full also prints every setting in effect, with defaults and presets.';

function describeCount(warnings: number): string {
  if (warnings === 0) return 'no warnings';
  return warnings === 1 ? '1 warning' : `${warnings} warnings`;
}

/** No line for an empty section. */
function formatSection(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
}
