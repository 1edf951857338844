import type { SettingOverride } from './setting-overrides.ts';
import type { LoadResult } from './load-config.ts';
import { completeAddress } from '../values/listen-address.ts';
import { loadConfig } from './load-config.ts';
import type { Mistake } from './mistakes.ts';
import type { ConfigEnvironment } from './substitute.ts';
import { describeFileError } from './substitute.ts';

/** The flags of `serve`, as typed. */
export interface ServeFlags {
  readonly config?: string | undefined;
  readonly upstream?: string | undefined;
  readonly listen?: string | undefined;
  readonly admin?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly logLevel?: string | undefined;
}

export type ServeSettings =
  | (LoadResult & {
      /** Undefined when the settings come from flags and variables alone. */
      readonly file: string | undefined;
    })
  /** Neither a file nor an upstream is given. */
  | { readonly kind: 'nothing' };

/**
 * The settings of `serve`: flags over `TIDEGATE_CONFIG`, `TIDEGATE_UPSTREAM`, `TIDEGATE_LISTEN`, `TIDEGATE_ADMIN` and
 * `TIDEGATE_REDIS_URL`, over the file, over defaults. An empty variable counts as absent. Call it again to reload. Never throws.
 */
export function resolveServeSettings(flags: ServeFlags, environment: ConfigEnvironment): ServeSettings {
  const { env, readFile } = environment;
  const file = flags.config ?? (env['TIDEGATE_CONFIG'] || undefined);
  const overrides = [
    overrideFrom('listen', ['--listen', completeOptional(flags.listen)], ['TIDEGATE_LISTEN', env['TIDEGATE_LISTEN']]),
    overrideFrom('admin', ['--admin', completeOptional(flags.admin)], ['TIDEGATE_ADMIN', env['TIDEGATE_ADMIN']]),
    overrideFrom('upstream', ['--upstream', flags.upstream], ['TIDEGATE_UPSTREAM', env['TIDEGATE_UPSTREAM']]),
    overrideFrom('redisUrl', ['TIDEGATE_REDIS_URL', env['TIDEGATE_REDIS_URL'] || undefined]),
    overrideFrom('clientKey', ['--client-key', flags.clientKey]),
    overrideFrom('logLevel', ['--log-level', flags.logLevel]),
  ].flat();
  if (file === undefined) {
    if (!overrides.some(({ setting }) => setting === 'upstream')) return checkOverridesAlone(overrides, environment);
    return { ...loadConfig('', '', environment, overrides), file };
  }
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    return { kind: 'mistakes', mistakes: [unreadableFile(file, error)], file };
  }
  return { ...loadConfig(text, file, environment, overrides), file };
}

/** Without a file and an upstream: the mistakes in flags and variables, which the user must correct in any case. */
function checkOverridesAlone(overrides: readonly SettingOverride[], environment: ConfigEnvironment): ServeSettings {
  const loaded = loadConfig('', '', environment, overrides);
  if (loaded.kind === 'ok') return { kind: 'nothing' };
  const mistakes = loaded.mistakes.filter(({ file }) => overrides.some(({ source }) => source === file));
  return mistakes.length === 0 ? { kind: 'nothing' } : { kind: 'mistakes', mistakes, file: undefined };
}

export function unreadableFile(file: string, error: unknown): Mistake {
  const message = `cannot be read: ${describeFileError(error)}`;
  return { file, line: undefined, column: undefined, path: '', message, suggestion: undefined };
}

function completeOptional(address: string | undefined): string | undefined {
  return address === undefined ? undefined : completeAddress(address);
}

/** The first source with a value. An empty flag is a value, and a mistake; an empty variable is absent. */
function overrideFrom(
  setting: SettingOverride['setting'],
  flag: OverrideSource,
  variable?: OverrideSource,
): SettingOverride[] {
  if (flag[1] !== undefined) return [{ setting, source: flag[0], text: flag[1] }];
  return variable?.[1] ? [{ setting, source: variable[0], text: variable[1] }] : [];
}

type OverrideSource = readonly [name: string, text: string | undefined];
