import type { ParseArgsConfig } from 'node:util';
import { parseArgs } from 'node:util';
import type { ServeFlags } from '../config/settings.ts';
import { suggest } from '../config/suggest.ts';
import { readDuration } from '../config/units.ts';
import type { BackOffOptions, StrategyName } from '../policy/backoff.ts';
import { isStrategyName, strategyNames } from '../policy/backoff.ts';
import type { CommandName } from './help.ts';
import { COMMAND_NAMES } from './help.ts';

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
  | {
      readonly kind: 'backoff';
      /** Empty: list them. */
      readonly names: readonly StrategyName[];
      readonly options: BackOffOptions;
      /** Delays to show, 1 to 1000; undefined when not told. */
      readonly attempts: number | undefined;
      readonly json: boolean;
    }
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

/** The message is one line, for whoever typed it. */
export type UsageError = { readonly kind: 'usage-error'; readonly message: string };

type Options = NonNullable<ParseArgsConfig['options']>;
const TEXT = { type: 'string' } as const;
const SWITCH = { type: 'boolean' } as const;

const COMMON: Options = { help: { ...SWITCH, short: 'h' }, version: SWITCH };
const OPTIONS: Readonly<Record<CommandName, Options>> = {
  serve: { config: TEXT, upstream: TEXT, listen: TEXT, admin: TEXT, 'client-key': TEXT, 'log-level': TEXT },
  check: {},
  diff: { json: SWITCH },
  schema: {},
  explain: { admin: TEXT, token: TEXT, json: SWITCH },
  backoff: { base: TEXT, multiplier: TEXT, max: TEXT, jitter: TEXT, attempts: TEXT, json: SWITCH },
  simulate: { list: SWITCH, seed: TEXT, json: SWITCH, svg: TEXT, check: SWITCH },
  demo: { listen: TEXT, admin: TEXT },
  top: { admin: TEXT, token: TEXT, once: SWITCH },
  help: {},
  version: {},
};

/** What was typed and is understood: values of options by name, and the rest. */
interface Typed {
  readonly value: (name: string) => string | undefined;
  readonly has: (name: string) => boolean;
  readonly rest: readonly string[];
}

/** @param argv without the program: `process.argv.slice(2)` */
export function parseArguments(argv: readonly string[]): Command | UsageError {
  const [first = '', ...others] = argv;
  const implied = first === '' || first.startsWith('-');
  const name = implied ? 'serve' : COMMAND_NAMES.find((command) => command === first);
  if (name === undefined) return unknownCommand(first);
  const typed = readTyped(implied ? argv : others, { ...COMMON, ...OPTIONS[name] });
  if ('kind' in typed) return typed;
  if (typed.has('help')) return { kind: 'help', topic: implied ? undefined : name };
  if (typed.has('version')) return { kind: 'version' };
  return interpret(name, typed);
}

function interpret(name: CommandName, typed: Typed): Command | UsageError {
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

function interpretBackoff({ value, has, rest }: Typed): Command | UsageError {
  const names: StrategyName[] = [];
  for (const name of rest) {
    if (!isStrategyName(name)) return usageError(`no strategy is called '${name}'`, suggest(name, strategyNames));
    names.push(name);
  }
  const options: { -readonly [K in keyof BackOffOptions]: BackOffOptions[K] } = {};
  for (const [flag, option] of [
    ['base', 'baseInterval'],
    ['max', 'maxInterval'],
  ] as const) {
    const text = value(flag);
    if (text === undefined) continue;
    const reading = readDuration(text);
    if (!reading.ok) return usageError(`--${flag}: ${reading.message}`, reading.suggestion);
    options[option] = reading.value;
  }
  const multiplier = value('multiplier');
  if (multiplier !== undefined) {
    if (!(isNumber(multiplier) && Number(multiplier) >= 1)) return usageError('--multiplier: expected a number from 1');
    options.multiplier = Number(multiplier);
  }
  const jitter = value('jitter');
  if (jitter !== undefined) {
    const reading = readDuration(jitter);
    const part = isNumber(jitter) && Number(jitter) <= 1;
    if (!part && !reading.ok) return usageError('--jitter: expected a part from 0 to 1, or a duration such as 100ms');
    if (part) options.jitter = Number(jitter);
    else if (reading.ok) options.jitterInterval = reading.value;
  }
  const attempts = value('attempts');
  if (attempts !== undefined && !(/^\d{1,4}$/.test(attempts) && Number(attempts) >= 1 && Number(attempts) <= 1000)) {
    return usageError('--attempts: expected a whole number from 1 to 1000');
  }
  return {
    kind: 'backoff',
    names,
    options,
    attempts: attempts === undefined ? undefined : Number(attempts),
    json: has('json'),
  };
}

function interpretSimulate({ value, has, rest }: Typed): Command | UsageError {
  const [scenario, ...surplus] = rest;
  if (has('list')) {
    return scenario === undefined ? { kind: 'simulate-list' } : usageError(`simulate --list takes no '${scenario}'`);
  }
  if (scenario === undefined) return usageError('simulate needs a FILE or a NAME; --list tells the names');
  if (surplus.length > 0) return usageError('simulate takes one FILE or NAME');
  const seed = value('seed');
  if (seed !== undefined && !(/^\d{1,16}$/.test(seed) && Number.isSafeInteger(Number(seed)))) {
    return usageError('--seed: expected a whole number from 0');
  }
  const svg = value('svg');
  if (svg === '') return usageError('--svg needs a FILE');
  return {
    kind: 'simulate',
    scenario,
    seed: seed === undefined ? undefined : Number(seed),
    json: has('json'),
    svg,
    check: has('check'),
  };
}

/** Not strict: the messages of `parseArgs` are of several sentences, and know no suggestions. */
function readTyped(args: readonly string[], options: Options): Typed | UsageError {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const values = new Map<string, string | undefined>();
  const rest: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') rest.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (option === undefined) {
      const near = suggest(token.name, Object.keys(options));
      return usageError(`unknown option ${token.rawName}`, near === undefined ? undefined : `--${near}`);
    }
    if (values.has(token.name)) return usageError(`${token.rawName} is given twice`);
    if (option.type === 'boolean' && token.value !== undefined) return usageError(`${token.rawName} takes no value`);
    // The next option is not this one's value, unless it is joined by "=".
    if (
      option.type === 'string' &&
      (token.value === undefined || (token.value.startsWith('-') && !token.inlineValue))
    ) {
      return usageError(`${token.rawName} needs a value`);
    }
    values.set(token.name, token.value);
  }
  return { value: (name) => values.get(name), has: (name) => values.has(name), rest };
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

function isNumber(text: string): boolean {
  return /^\d+(?:\.\d+)?$/.test(text);
}

function usageError(message: string, suggestion?: string): UsageError {
  return {
    kind: 'usage-error',
    message: suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`,
  };
}
