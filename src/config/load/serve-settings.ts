import type { Given } from './setting-overrides.ts';
import type { Loaded } from './load-config.ts';
import { loadConfig } from './load-config.ts';
import type { Mistake } from './mistakes.ts';
import type { Surroundings } from './substitute.ts';
import { explain } from './substitute.ts';

/** The flags of `serve`, as typed. */
export interface ServeFlags {
  readonly config?: string | undefined;
  readonly upstream?: string | undefined;
  readonly listen?: string | undefined;
  readonly admin?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly logLevel?: string | undefined;
}

export type Settings =
  | (Loaded & {
      /** Undefined when flags and variables said everything. */
      readonly file: string | undefined;
    })
  /** Neither a file nor an upstream was named. */
  | { readonly kind: 'nothing' };

/**
 * What the process is to do: flags over `TIDEGATE_CONFIG`, `TIDEGATE_UPSTREAM`, `TIDEGATE_LISTEN`, `TIDEGATE_ADMIN` and
 * `TIDEGATE_REDIS_URL`, over the file, over defaults. An empty variable counts as absent. Call it again to reload. Never throws.
 */
export function resolveSettings(flags: ServeFlags, surroundings: Surroundings): Settings {
  const { env, readFile } = surroundings;
  const file = flags.config ?? (env['TIDEGATE_CONFIG'] || undefined);
  const given = [
    give('listen', ['--listen', flags.listen], ['TIDEGATE_LISTEN', env['TIDEGATE_LISTEN']]),
    give('admin', ['--admin', flags.admin], ['TIDEGATE_ADMIN', env['TIDEGATE_ADMIN']]),
    give('upstream', ['--upstream', flags.upstream], ['TIDEGATE_UPSTREAM', env['TIDEGATE_UPSTREAM']]),
    give('redisUrl', ['TIDEGATE_REDIS_URL', env['TIDEGATE_REDIS_URL'] || undefined]),
    give('clientKey', ['--client-key', flags.clientKey]),
    give('logLevel', ['--log-level', flags.logLevel]),
  ].flat();
  if (file === undefined) {
    if (!given.some(({ setting }) => setting === 'upstream')) return { kind: 'nothing' };
    return { ...loadConfig('', '', surroundings, given), file };
  }
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    return { kind: 'mistakes', mistakes: [unreadable(file, error)], file };
  }
  return { ...loadConfig(text, file, surroundings, given), file };
}

export function unreadable(file: string, error: unknown): Mistake {
  const message = `cannot be read: ${explain(error)}`;
  return { file, line: undefined, column: undefined, path: '', message, suggestion: undefined };
}

/** The first source that says anything. A flag may be given empty, which is then a mistake; a variable may not. */
function give(setting: Given['setting'], flag: Source, variable?: Source): Given[] {
  if (flag[1] !== undefined) return [{ setting, source: flag[0], text: flag[1] }];
  return variable?.[1] ? [{ setting, source: variable[0], text: variable[1] }] : [];
}

type Source = readonly [name: string, text: string | undefined];
