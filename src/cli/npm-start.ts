/** `npm start` in a clone of the repository, where no command `tidegate` is installed. */
import type { ConfigEnvironment } from '../config/load/substitute.ts';
import type { UsageError } from './cli-parse.ts';

type Variables = ConfigEnvironment['env'];

const NPM_START = 'npm start --';
const PRACTICE_CONFIG = ['--config', 'config/practice.yaml'];

/** Options that npm does not know, and nevertheless removes from the command line if no `--` is before them. */
export const OPTIONS_WITH_VALUE: readonly string[] = [
  ...['config', 'upstream', 'listen', 'admin', 'client-key', 'log-level', 'seed', 'svg', 'state', 'limit'],
  ...['route', 'after', 'confirm', 'file', 'expires'],
];
export const OPTIONS_WITHOUT_VALUE = ['full', 'probe', 'once', 'list', 'check', 'oldest'];

/** The message, and the command to type for help. */
export function describeUsageError({ message, command }: UsageError, env: Variables): string {
  const topic = command === undefined ? 'help' : `help ${command}`;
  return `${message}; run ${programName(env)} ${topic} for usage`;
}

/** The words before a command, as the user must type them. */
export function programName(env: Variables): string {
  return runsUnderNpmStart(env) ? NPM_START : 'tidegate';
}

/** Options as the user must type them: after `npm start --`, or as they are. */
export function formatOptions(options: string, env: Variables): string {
  return runsUnderNpmStart(env) ? `${NPM_START} ${options}` : options;
}

/** A package that depends on Tidegate may have a script of the same name. */
function runsUnderNpmStart(env: Variables): boolean {
  const { npm_lifecycle_event: script, npm_package_name: project, npm_execpath: npm } = env;
  return script === 'start' && project === 'tidegate' && npm !== undefined;
}

/** The arguments of `npm start`, with the practice config if they serve and name neither a config nor an upstream. */
export function addPracticeConfig(args: readonly string[], env: Variables): readonly string[] {
  const [first = 'serve'] = args;
  const serves = first === 'serve' || first.startsWith('-');
  const isNamed = args.some((word) => /^--(?:config|upstream)(?:=|$)/.test(word));
  if (!serves || isNamed || env['TIDEGATE_CONFIG'] || env['TIDEGATE_UPSTREAM']) return args;
  return [...args, ...PRACTICE_CONFIG];
}

/**
 * Why `npm start --config FILE` cannot work: npm passes FILE only, and the option as a variable.
 * @param args what npm passed
 * @returns undefined if npm has removed no option
 */
export function describeRemovedOptions(args: readonly string[], env: Variables): string | undefined {
  if (!runsUnderNpmStart(env)) return undefined;
  const removed = [...OPTIONS_WITH_VALUE, ...OPTIONS_WITHOUT_VALUE].flatMap((name) => {
    const value = env[`npm_config_${name.replaceAll('-', '_')}`];
    return value === undefined ? [] : [{ name, value }];
  });
  if (removed.length === 0) return undefined;
  const names = removed.map(({ name }) => `--${name}`).join(' and ');
  return `npm has removed ${names}: put -- before the options: ${NPM_START} ${restore(args, removed).join(' ')}`;
}

/** The command line as it was meant. The order of several options is unknown, so their values are left out. */
function restore(args: readonly string[], removed: readonly { name: string; value: string }[]): readonly string[] {
  const [only, ...others] = removed;
  if (only === undefined || others.length > 0) return removed.map(({ name }) => `--${name} …`);
  const { name, value } = only;
  // npm sets "true" if the option and its value were not joined by "=".
  if (value !== 'true') return [...args, `--${name}=${value}`];
  if (OPTIONS_WITHOUT_VALUE.includes(name)) return [...args, `--${name}`];
  return [...args.slice(0, -1), `--${name}`, args.at(-1) ?? '…'];
}
