import { readFileSync } from 'node:fs';
import type { Effective } from '../config/load/config-diff.ts';
import { checkMounted } from '../config/rules/mounted-config-rules.ts';
import { loadConfig } from '../config/load/load-config.ts';
import type { Mistake } from '../config/load/mistakes.ts';
import { unreadable } from '../config/load/serve-settings.ts';
import type { ConfigOrigin } from './config-origin.ts';
import { ConfigError } from './config-error.ts';
import { withoutLines, writeObject } from './config-object.ts';

export interface MountedConfig extends Effective {
  readonly warnings: readonly Mistake[];
}

/** What mistakes in an object are told of. */
const OBJECT = 'config';

/** @throws ConfigError that tells every mistake */
export function readConfig(origin: ConfigOrigin): MountedConfig {
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  const { file = OBJECT, config } = origin;
  const load = (text: string): ReturnType<typeof loadConfig> =>
    loadConfig(text, file, { env: process.env, readFile }, [], checkMounted);
  if (config !== undefined) {
    const loaded = load(writeObject(config, OBJECT));
    if (loaded.kind === 'mistakes') throw new ConfigError(loaded.mistakes.map(withoutLines));
    return { ...loaded, warnings: loaded.warnings.map(withoutLines) };
  }
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    throw new ConfigError([unreadable(file, error)]);
  }
  const loaded = load(text);
  if (loaded.kind === 'mistakes') throw new ConfigError(loaded.mistakes);
  return loaded;
}
