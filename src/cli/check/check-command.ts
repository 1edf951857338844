import { formatEffectiveConfig } from '../../config/load/effective-config.ts';
import { loadConfig } from '../../config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../config/load/mistakes.ts';
import { unreadableFile } from '../../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import { describeLimits } from './describe-limits.ts';
import { describeProviders, findUncertainSettings, markUncertain } from './describe-providers.ts';
import { listWorstCases } from './worst-cases.ts';

export interface CheckReport {
  /** Lines, each with a newline. Valid YAML if the configuration is valid: the report is in comments. */
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/** `tidegate check FILE`: prints all errors; or the effective configuration, worst cases, limits, presets and warnings. */
export function runCheck(file: string, environment: ConfigEnvironment): CheckReport {
  let text: string;
  try {
    text = environment.readFile(file);
  } catch (error) {
    return { text: `${formatMistakes([unreadableFile(file, error)])}\n`, exitCode: 1 };
  }
  const loaded = loadConfig(text, file, environment);
  if (loaded.kind === 'mistakes') return { text: `${formatMistakes(loaded.mistakes)}\n`, exitCode: 1 };
  const { config, warnings, substituted, isWritten } = loaded;
  const remarks = ['', 'Worst cases:', ...listWorstCases(config).map((line) => `  ${line}`)];
  const limits = describeLimits(config);
  if (limits.length > 0) remarks.push('', 'Limits:', ...limits.map((line) => `  ${line}`));
  const uncertain = findUncertainSettings(config, environment.readFile, isWritten);
  const providers = describeProviders(config, environment.readFile, uncertain);
  if (providers.length > 0) remarks.push('', 'Providers:', ...providers.map((line) => `  ${line}`));
  if (warnings.length > 0) remarks.push('', ...formatWarnings(warnings).split('\n'));
  const comments = remarks.map((line) => `# ${line}`.trimEnd());
  return {
    text: `${formatEffectiveConfig(config, substituted, markUncertain(uncertain))}${comments.join('\n')}\n`,
    exitCode: 0,
  };
}
