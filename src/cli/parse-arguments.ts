import type { ServeFlags } from '../config/load/serve-settings.ts';
import { suggest } from '../config/values/suggest.ts';
import type { BackoffCommand } from './backoff/backoff-arguments.ts';
import { BACKOFF_OPTIONS, toBackoffCommand } from './backoff/backoff-arguments.ts';
import type { DeliveriesCommand } from './deliveries/deliveries-arguments.ts';
import { DELIVERIES_OPTIONS, toDeliveriesCommand } from './deliveries/deliveries-arguments.ts';
import type { ClientsCommand } from './clients/clients-arguments.ts';
import { CLIENTS_OPTIONS, toClientsCommand } from './clients/clients-arguments.ts';
import type { CommandName, Shell } from './command-names.ts';
import { COMMAND_NAMES, SHELLS } from './command-names.ts';
import type { DoctorCommand } from './doctor/doctor-arguments.ts';
import { DOCTOR_OPTIONS, toDoctorCommand } from './doctor/doctor-arguments.ts';
import type { LabCommand } from '../laboratory/commands/lab-arguments.ts';
import { parseLabCommand } from '../laboratory/commands/lab-arguments.ts';
import type { KeysCommand } from './keys/keys-arguments.ts';
import { KEYS_OPTIONS, toKeysCommand } from './keys/keys-arguments.ts';
import type { OptionSpecs, ParsedOptions, UsageError } from './cli-parse.ts';
import { parseSeed, parseOptions, BOOLEAN_OPTION, STRING_OPTION, usageError } from './cli-parse.ts';

/** A parsed command line. */
export type CliCommand =
  | { readonly kind: 'serve'; readonly flags: ServeFlags }
  | { readonly kind: 'check'; readonly file: string; readonly full: boolean; readonly probe: boolean }
  | DoctorCommand
  | { readonly kind: 'diff'; readonly before: string; readonly after: string; readonly json: boolean }
  | { readonly kind: 'schema' }
  | {
      readonly kind: 'explain';
      readonly id: string;
      readonly admin: string | undefined;
      readonly token: string | undefined;
      readonly json: boolean;
    }
  | ClientsCommand
  | KeysCommand
  | DeliveriesCommand
  | BackoffCommand
  | LabCommand
  | { readonly kind: 'simulate-list' }
  | {
      readonly kind: 'simulate';
      /** A file, or the name of a bundled scenario. */
      readonly scenario: string;
      /** Undefined: the seed of the scenario. */
      readonly seed: number | undefined;
      readonly json: boolean;
      readonly svg: string | undefined;
      readonly check: boolean;
    }
  | { readonly kind: 'demo'; readonly flags: Pick<ServeFlags, 'listen' | 'admin'> }
  | {
      readonly kind: 'top';
      /** Address of the admin port; undefined if not given, as is the token. */
      readonly admin: string | undefined;
      readonly token: string | undefined;
      readonly once: boolean;
    }
  | { readonly kind: 'completion'; readonly shell: Shell }
  | { readonly kind: 'man' }
  | { readonly kind: 'help'; readonly topic: CommandName | undefined }
  | { readonly kind: 'version' };

const COMMON_OPTIONS: OptionSpecs = {
  help: { ...BOOLEAN_OPTION, short: 'h' },
  version: { ...BOOLEAN_OPTION, short: 'v' },
};
export const COMMAND_OPTIONS: Readonly<Record<Exclude<CommandName, 'lab'>, OptionSpecs>> = {
  serve: {
    config: STRING_OPTION,
    upstream: STRING_OPTION,
    listen: STRING_OPTION,
    admin: STRING_OPTION,
    'client-key': STRING_OPTION,
    'log-level': STRING_OPTION,
  },
  check: { full: BOOLEAN_OPTION, probe: BOOLEAN_OPTION },
  doctor: DOCTOR_OPTIONS,
  diff: { json: BOOLEAN_OPTION },
  schema: {},
  explain: { admin: STRING_OPTION, token: STRING_OPTION, json: BOOLEAN_OPTION },
  clients: CLIENTS_OPTIONS,
  keys: KEYS_OPTIONS,
  deliveries: DELIVERIES_OPTIONS,
  backoff: BACKOFF_OPTIONS,
  simulate: {
    list: BOOLEAN_OPTION,
    seed: STRING_OPTION,
    json: BOOLEAN_OPTION,
    svg: STRING_OPTION,
    check: BOOLEAN_OPTION,
  },
  demo: { listen: STRING_OPTION, admin: STRING_OPTION },
  top: { admin: STRING_OPTION, token: STRING_OPTION, once: BOOLEAN_OPTION },
  completion: {},
  man: {},
  help: {},
  version: {},
};

/** @param argv without the program name: `process.argv.slice(2)` */
export function parseArguments(argv: readonly string[]): CliCommand | UsageError {
  const [first = '', ...others] = argv;
  const implied = first === '' || first.startsWith('-');
  const name = implied ? 'serve' : COMMAND_NAMES.find((command) => command === first);
  if (name === undefined) return unknownCommand(first);
  // Each study of the lab has options of its own.
  const parsed = name === 'lab' ? parseLabCommand(others) : parseCommand(name, implied, implied ? argv : others);
  // The help of `help` lists no commands.
  return parsed.kind === 'usage-error' && name !== 'help' ? { ...parsed, command: name } : parsed;
}

function parseCommand(
  name: keyof typeof COMMAND_OPTIONS,
  implied: boolean,
  args: readonly string[],
): CliCommand | UsageError {
  const options = parseOptions(args, { ...COMMON_OPTIONS, ...COMMAND_OPTIONS[name] });
  if ('kind' in options) return options;
  if (options.has('help')) return { kind: 'help', topic: implied ? undefined : name };
  if (options.has('version')) return { kind: 'version' };
  return toCommand(name, options);
}

function toCommand(name: keyof typeof COMMAND_OPTIONS, options: ParsedOptions): CliCommand | UsageError {
  const { value, positionals } = options;
  const [operand, ...surplus] = positionals;
  const listen = value('listen');
  const admin = value('admin');
  switch (name) {
    case 'serve':
      if (operand !== undefined) {
        return usageError(`serve takes no '${operand}'`, looksLikeFile(operand) ? `--config ${operand}` : undefined);
      }
      return {
        kind: 'serve',
        flags: {
          config: value('config'),
          upstream: value('upstream'),
          listen,
          admin,
          clientKey: value('client-key'),
          logLevel: value('log-level'),
        },
      };
    case 'check':
      if (operand === undefined) return usageError('check needs a FILE');
      if (surplus.length > 0) return usageError('check takes one FILE');
      return { kind: 'check', file: operand, full: options.has('full'), probe: options.has('probe') };
    case 'doctor':
      return toDoctorCommand(options);
    case 'explain':
      if (operand === undefined) return usageError('explain needs an ID: the Tidegate-Request-Id of a response');
      if (surplus.length > 0) return usageError('explain takes one ID');
      return { kind: 'explain', id: operand, admin, token: value('token'), json: options.has('json') };
    case 'diff': {
      const [after, ...more] = surplus;
      if (operand === undefined || after === undefined) return usageError('diff needs two files: OLD NEW');
      if (more.length > 0) return usageError('diff takes two files: OLD NEW');
      return { kind: 'diff', before: operand, after, json: options.has('json') };
    }
    case 'clients':
      return toClientsCommand(options);
    case 'keys':
      return toKeysCommand(options);
    case 'deliveries':
      return toDeliveriesCommand(options);
    case 'backoff':
      return toBackoffCommand(options);
    case 'simulate':
      return toSimulateCommand(options);
    case 'help': {
      const topic = COMMAND_NAMES.find((command) => command === operand);
      return operand !== undefined && topic === undefined ? unknownCommand(operand) : { kind: 'help', topic };
    }
    case 'top':
      if (operand !== undefined) return usageError(`top takes no '${operand}'`, `--admin ${operand}`);
      return { kind: 'top', admin, token: value('token'), once: options.has('once') };
    case 'completion':
      return toCompletionCommand(operand, surplus);
    case 'demo':
    case 'schema':
    case 'man':
    case 'version':
      if (operand !== undefined) return usageError(`${name} takes no '${operand}'`);
      return name === 'demo' ? { kind: name, flags: { listen, admin } } : { kind: name };
  }
}

function toCompletionCommand(operand: string | undefined, surplus: readonly string[]): CliCommand | UsageError {
  const shell = SHELLS.find((name) => name === operand);
  if (shell !== undefined && surplus.length === 0) return { kind: 'completion', shell };
  return usageError(`completion needs one shell: ${SHELLS.join(', ')}`);
}

function toSimulateCommand(options: ParsedOptions): CliCommand | UsageError {
  const { value, has, positionals } = options;
  const [scenario, ...surplus] = positionals;
  if (has('list')) {
    return scenario === undefined ? { kind: 'simulate-list' } : usageError(`simulate --list takes no '${scenario}'`);
  }
  if (scenario === undefined) return usageError('simulate needs a FILE or a NAME; --list shows the names');
  if (surplus.length > 0) return usageError('simulate takes one FILE or NAME');
  const seed = parseSeed(options);
  if (typeof seed === 'object') return seed;
  const svg = value('svg');
  if (svg === '') return usageError('--svg needs a FILE');
  return {
    kind: 'simulate',
    scenario,
    seed,
    json: has('json'),
    svg,
    check: has('check'),
  };
}

function unknownCommand(word: string): UsageError {
  return usageError(
    `unknown command '${word}'`,
    looksLikeFile(word) ? `serve --config ${word}` : (suggest(word, COMMAND_NAMES) ?? COMMAND_SYNONYMS.get(word)),
  );
}

const COMMAND_SYNONYMS: ReadonlyMap<string, CommandName> = new Map([
  ['start', 'serve'],
  ['run', 'serve'],
  ['up', 'serve'],
  ['validate', 'check'],
  ['test', 'check'],
  ['diagnose', 'doctor'],
]);

function looksLikeFile(word: string): boolean {
  return /[./]/.test(word) && !word.includes('://');
}
