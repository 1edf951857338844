import type { ServeFlags } from '../config/load/serve-settings.ts';
import { suggest } from '../config/values/suggest.ts';
import type { BackoffCommand } from './backoff/backoff-arguments.ts';
import { BACKOFF_OPTIONS, interpretBackoff } from './backoff/backoff-arguments.ts';
import type { CommandName } from './help.ts';
import { COMMAND_NAMES } from './help.ts';
import type { LabCommand } from '../laboratory/commands/lab-arguments.ts';
import { parseLab } from '../laboratory/commands/lab-arguments.ts';
import type { Options, Typed, UsageError } from './cli-parse.ts';
import { readSeed, readTyped, SWITCH, TEXT, usageError } from './cli-parse.ts';

/** What was asked for. */
export type Command =
  | { readonly kind: 'serve'; readonly flags: ServeFlags }
  | { readonly kind: 'check'; readonly file: string }
  | { readonly kind: 'diff'; readonly before: string; readonly after: string; readonly json: boolean }
  | { readonly kind: 'schema' }
  | {
      readonly kind: 'explain';
      readonly id: string;
      readonly admin: string | undefined;
      readonly token: string | undefined;
      readonly json: boolean;
    }
  | BackoffCommand
  | LabCommand
  | { readonly kind: 'simulate-list' }
  | {
      readonly kind: 'simulate';
      /** A file, or a name. */
      readonly scenario: string;
      /** Undefined: the scenario's own. */
      readonly seed: number | undefined;
      readonly json: boolean;
      readonly svg: string | undefined;
      readonly check: boolean;
    }
  | { readonly kind: 'demo'; readonly flags: Pick<ServeFlags, 'listen' | 'admin'> }
  | {
      readonly kind: 'top';
      /** Of the admin port, and its token; undefined when not told. */
      readonly admin: string | undefined;
      readonly token: string | undefined;
      readonly once: boolean;
    }
  | { readonly kind: 'help'; readonly topic: CommandName | undefined }
  | { readonly kind: 'version' };

const COMMON: Options = { help: { ...SWITCH, short: 'h' }, version: SWITCH };
const OPTIONS: Readonly<Record<Exclude<CommandName, 'lab'>, Options>> = {
  serve: { config: TEXT, upstream: TEXT, listen: TEXT, admin: TEXT, 'client-key': TEXT, 'log-level': TEXT },
  check: {},
  diff: { json: SWITCH },
  schema: {},
  explain: { admin: TEXT, token: TEXT, json: SWITCH },
  backoff: BACKOFF_OPTIONS,
  simulate: { list: SWITCH, seed: TEXT, json: SWITCH, svg: TEXT, check: SWITCH },
  demo: { listen: TEXT, admin: TEXT },
  top: { admin: TEXT, token: TEXT, once: SWITCH },
  help: {},
  version: {},
};

/** @param argv without the program: `process.argv.slice(2)` */
export function parseArguments(argv: readonly string[]): Command | UsageError {
  const [first = '', ...others] = argv;
  const implied = first === '' || first.startsWith('-');
  const name = implied ? 'serve' : COMMAND_NAMES.find((command) => command === first);
  if (name === undefined) return unknownCommand(first);
  if (name === 'lab') return parseLab(others); // each study has options of its own
  const typed = readTyped(implied ? argv : others, { ...COMMON, ...OPTIONS[name] });
  if ('kind' in typed) return typed;
  if (typed.has('help')) return { kind: 'help', topic: implied ? undefined : name };
  if (typed.has('version')) return { kind: 'version' };
  return interpret(name, typed);
}

function interpret(name: keyof typeof OPTIONS, typed: Typed): Command | UsageError {
  const { value, rest } = typed;
  const [operand, ...surplus] = rest;
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
      return surplus.length > 0 ? usageError('check takes one FILE') : { kind: 'check', file: operand };
    case 'explain':
      if (operand === undefined) return usageError('explain needs an ID: the Tidegate-Request-Id of an answer');
      if (surplus.length > 0) return usageError('explain takes one ID');
      return { kind: 'explain', id: operand, admin, token: value('token'), json: typed.has('json') };
    case 'diff': {
      const [after, ...more] = surplus;
      if (operand === undefined || after === undefined) return usageError('diff needs two files: OLD NEW');
      if (more.length > 0) return usageError('diff takes two files: OLD NEW');
      return { kind: 'diff', before: operand, after, json: typed.has('json') };
    }
    case 'backoff':
      return interpretBackoff(typed);
    case 'simulate':
      return interpretSimulate(typed);
    case 'help': {
      const topic = COMMAND_NAMES.find((command) => command === operand);
      return operand !== undefined && topic === undefined ? unknownCommand(operand) : { kind: 'help', topic };
    }
    case 'top':
      if (operand !== undefined) return usageError(`top takes no '${operand}'`, `--admin ${operand}`);
      return { kind: 'top', admin, token: value('token'), once: typed.has('once') };
    case 'demo':
    case 'schema':
    case 'version':
      if (operand !== undefined) return usageError(`${name} takes no '${operand}'`);
      return name === 'demo' ? { kind: name, flags: { listen, admin } } : { kind: name };
  }
}

function interpretSimulate(typed: Typed): Command | UsageError {
  const { value, has, rest } = typed;
  const [scenario, ...surplus] = rest;
  if (has('list')) {
    return scenario === undefined ? { kind: 'simulate-list' } : usageError(`simulate --list takes no '${scenario}'`);
  }
  if (scenario === undefined) return usageError('simulate needs a FILE or a NAME; --list tells the names');
  if (surplus.length > 0) return usageError('simulate takes one FILE or NAME');
  const seed = readSeed(typed);
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
    looksLikeFile(word) ? `serve --config ${word}` : suggest(word, COMMAND_NAMES),
  );
}

function looksLikeFile(word: string): boolean {
  return /[./]/.test(word) && !word.includes('://');
}
