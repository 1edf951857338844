/** What is typed behind a command: options by name, and the rest. */
import type { ParseArgsConfig } from 'node:util';
import { parseArgs } from 'node:util';
import { suggest } from '../config/values/suggest.ts';

/** The message is one line, for whoever typed it. */
export type UsageError = { readonly kind: 'usage-error'; readonly message: string };

export type Options = NonNullable<ParseArgsConfig['options']>;
export const TEXT = { type: 'string' } as const;
export const SWITCH = { type: 'boolean' } as const;

/** What was typed and is understood: values of options by name, and the rest. */
export interface Typed {
  readonly value: (name: string) => string | undefined;
  readonly has: (name: string) => boolean;
  readonly rest: readonly string[];
}

/** Not strict: the messages of `parseArgs` are of several sentences, and know no suggestions. */
export function readTyped(args: readonly string[], options: Options): Typed | UsageError {
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
    // The next option is not this one's value, unless it is joined by "="; a negative number is none.
    if (
      option.type === 'string' &&
      (token.value === undefined || (/^-(?![.\d])/.test(token.value) && !token.inlineValue))
    ) {
      return usageError(`${token.rawName} needs a value`);
    }
    values.set(token.name, token.value);
  }
  return { value: (name) => values.get(name), has: (name) => values.has(name), rest };
}

export function isNumber(text: string): boolean {
  return /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(text);
}

export function isNegative(text: string): boolean {
  return /^-[.\d]/.test(text);
}

/** `--seed`: undefined when it was not told. */
export function readSeed({ value }: Typed): number | undefined | UsageError {
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
