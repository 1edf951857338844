/** Parses the arguments of a command: options by name, and positionals. */
import type { ParseArgsConfig } from 'node:util';
import { parseArgs } from 'node:util';
import { suggest } from '../config/values/suggest.ts';

/** A mistake on the command line. The message is one line. */
export interface UsageError {
  readonly kind: 'usage-error';
  readonly message: string;
  /** The command whose help lists the options; undefined if the command is unknown. */
  readonly command?: string;
}

/** Names that other proxies and servers use for an option. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['port', 'listen'],
  ['p', 'listen'],
  ['host', 'listen'],
  ['bind', 'listen'],
  ['address', 'listen'],
  ['target', 'upstream'],
  ['backend', 'upstream'],
  ['url', 'upstream'],
  ['file', 'config'],
  ['c', 'config'],
  ['V', 'version'],
  ['f', 'config'],
]);

export type OptionSpecs = NonNullable<ParseArgsConfig['options']>;
export const STRING_OPTION = { type: 'string' } as const;
export const BOOLEAN_OPTION = { type: 'boolean' } as const;

/** The options by name, and the positionals. */
export interface ParsedOptions {
  readonly value: (name: string) => string | undefined;
  readonly has: (name: string) => boolean;
  readonly positionals: readonly string[];
}

/** Uses `parseArgs` in its lenient mode, because its own messages are long and have no suggestions. */
export function parseOptions(args: readonly string[], options: OptionSpecs): ParsedOptions | UsageError {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const values = new Map<string, string | undefined>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (option === undefined) {
      const near = suggest(token.name, Object.keys(options)) ?? SYNONYMS.get(token.name);
      const isKnown = near !== undefined && Object.hasOwn(options, near);
      return usageError(`unknown option ${token.rawName}`, isKnown ? `--${near}` : undefined);
    }
    if (values.has(token.name)) return usageError(`${token.rawName} is given twice`);
    if (option.type === 'boolean' && token.value !== undefined) return usageError(`${token.rawName} takes no value`);
    // An option that follows is not the value of this one, unless joined by "=". A negative number is a value.
    if (
      option.type === 'string' &&
      (token.value === undefined || (/^-(?![.\d])/.test(token.value) && !token.inlineValue))
    ) {
      return usageError(`${token.rawName} needs a value`);
    }
    values.set(token.name, token.value);
  }
  return { value: (name) => values.get(name), has: (name) => values.has(name), positionals };
}

export function isNumber(text: string): boolean {
  return /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(text);
}

export function isNegative(text: string): boolean {
  return /^-[.\d]/.test(text);
}

/** The value of `--seed`; undefined if it is not given. */
export function parseSeed({ value }: ParsedOptions): number | undefined | UsageError {
  const seed = value('seed');
  if (seed === undefined) return undefined;
  if (/^\d{1,16}$/.test(seed) && Number.isSafeInteger(Number(seed))) return Number(seed);
  return usageError('--seed: expected a whole number from 0');
}

export function usageError(message: string, suggestion?: string): UsageError {
  return {
    kind: 'usage-error',
    message: suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`,
  };
}
