import { printEffective } from '../../config/load/effective-config.ts';
import { loadConfig } from '../../config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../config/load/mistakes.ts';
import { unreadable } from '../../config/load/serve-settings.ts';
import type { Surroundings } from '../../config/load/substitute.ts';
import { describeLimits } from './describe-limits.ts';
import { describeProviders, findDoubts, markDoubts } from './describe-providers.ts';
import { listWorstCases } from './worst-cases.ts';

export interface CheckReport {
  /** Lines, each ended by a newline. YAML when the configuration is sound: what is not the configuration is a comment. */
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/** `tidegate check FILE`: every mistake; or the configuration in effect, its worst cases, limits that are nested, what its presets leave open, its warnings. */
export function check(file: string, surroundings: Surroundings): CheckReport {
  let text: string;
  try {
    text = surroundings.readFile(file);
  } catch (error) {
    return { text: `${formatMistakes([unreadable(file, error)])}\n`, exitCode: 1 };
  }
  const loaded = loadConfig(text, file, surroundings);
  if (loaded.kind === 'mistakes') return { text: `${formatMistakes(loaded.mistakes)}\n`, exitCode: 1 };
  const { config, warnings, substituted, isWritten } = loaded;
  const remarks = ['', 'Worst cases:', ...listWorstCases(config).map((line) => `  ${line}`)];
  const limits = describeLimits(config);
  if (limits.length > 0) remarks.push('', 'Limits:', ...limits.map((line) => `  ${line}`));
  const doubts = findDoubts(config, surroundings.readFile, isWritten);
  const providers = describeProviders(config, surroundings.readFile, doubts);
  if (providers.length > 0) remarks.push('', 'Providers:', ...providers.map((line) => `  ${line}`));
  if (warnings.length > 0) remarks.push('', ...formatWarnings(warnings).split('\n'));
  const comments = remarks.map((line) => `# ${line}`.trimEnd());
  return { text: `${printEffective(config, substituted, markDoubts(doubts))}${comments.join('\n')}\n`, exitCode: 0 };
}
