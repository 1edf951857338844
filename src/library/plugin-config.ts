import { readFileSync } from 'node:fs';
import type { EffectiveConfiguration } from '../config/load/config-diff.ts';
import { checkMountedConfig } from '../config/rules/mounted-config-rules.ts';
import { loadConfig } from '../config/load/load-config.ts';
import type { Mistake } from '../config/load/mistakes.ts';
import { unreadableFile } from '../config/load/serve-settings.ts';
import type { ConfigOrigin } from './config-origin.ts';
import { ConfigError } from './config-error.ts';
import { withoutPosition, stringifyConfig } from './config-object.ts';

export interface PluginConfig extends EffectiveConfiguration {
  readonly warnings: readonly Mistake[];
}

/** Stands for the file in messages about a configuration object. */
const CONFIG_NAME = 'config';

/** @throws ConfigError with every problem */
export function loadPluginConfig(origin: ConfigOrigin): PluginConfig {
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  const { file = CONFIG_NAME, config } = origin;
  const load = (text: string): ReturnType<typeof loadConfig> =>
    loadConfig(text, file, { env: process.env, readFile }, [], checkMountedConfig);
  if (config !== undefined) {
    const loaded = load(stringifyConfig(config, CONFIG_NAME));
    if (loaded.kind === 'mistakes') throw new ConfigError(loaded.mistakes.map(withoutPosition));
    return { ...loaded, warnings: loaded.warnings.map(withoutPosition) };
  }
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    throw new ConfigError([unreadableFile(file, error)]);
  }
  const loaded = load(text);
  if (loaded.kind === 'mistakes') throw new ConfigError(loaded.mistakes);
  return loaded;
}
