import type { z } from 'zod';
import type { KnownKeys } from './known-keys.ts';
import type { Finding, Path } from './mistakes.ts';
import { valueAt } from '../values/plain-object.ts';
import { suggest } from '../values/suggest.ts';
import { parseUpstreamUrl } from '../values/upstream-url.ts';

type Issue = z.core.$ZodIssue;

/** The issues that zod reports, as findings with our messages. Messages contain no values. */
export function toFindings(issues: readonly Issue[], root: unknown, keys: KnownKeys): Finding[] {
  return issues.flatMap((issue) => translateIssue(issue, toPath(issue.path), { root, keys }));
}

interface TranslationContext {
  readonly root: unknown;
  readonly keys: KnownKeys;
}

function translateIssue(issue: Issue, path: Path, context: TranslationContext): Finding[] {
  const { root, keys } = context;
  const input = valueAt(root, path);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => describeUnknownKey(path, key, keys));
  }
  if (issue.code === 'invalid_key') {
    return [{ path, at: 'key', message: issue.issues[0]?.message ?? 'not a name' }];
  }
  if (input === undefined) return [{ path, at: 'value', message: 'missing' }];
  if (issue.code === 'invalid_union') {
    const intended = intendedBranch(issue.errors);
    if (intended !== undefined) {
      return intended.flatMap((inner) => translateIssue(inner, [...path, ...toPath(inner.path)], context));
    }
  }
  return [{ path, at: 'value', ...describeIssue(issue, path, input) }];
}

function describeUnknownKey(path: Path, key: string, keys: KnownKeys): Finding {
  const here = [...path, key];
  const why = keys.whyUnsupported(here);
  if (why !== undefined) return { path: here, at: 'key', message: why };
  const other = keys.findDiscriminator(path, key);
  if (other !== undefined) return { path: here, at: 'key', message: `allowed only with ${other}` };
  return { path: here, at: 'key', message: 'unknown key', suggestion: keys.suggestKey(path, key) };
}

/** The one branch of a union that fails inside, not as a whole: the value is of its kind. */
function intendedBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const inside = branches.filter(
    (issues) => !issues.some(({ code, path }) => path.length === 0 && WHOLE_VALUE_CODES.has(code)),
  );
  return inside.length === 1 ? inside[0] : undefined;
}

const WHOLE_VALUE_CODES: ReadonlySet<string> = new Set(['invalid_type', 'invalid_value', 'invalid_union']);

function describeIssue(
  issue: Issue,
  path: Path,
  input: unknown,
): { readonly message: string; readonly suggestion?: string | undefined } {
  switch (issue.code) {
    case 'invalid_type':
      return { message: describeType(issue.expected, input), suggestion: suggestMapping(path, input) };
    case 'invalid_value': {
      const values = issue.values.map(String);
      const own = issue.message.startsWith('Invalid ') ? undefined : issue.message;
      return { message: own ?? describeChoice(values), suggestion: suggestChoice(input, values) };
    }
    case 'invalid_union':
      if ('options' in issue && issue.options !== undefined) {
        const kinds = issue.options.map(String);
        return { message: describeChoice(kinds), suggestion: suggestChoice(input, kinds) };
      }
      return { message: issue.message };
    case 'too_small':
      return { message: describeMinimum(issue.origin, Number(issue.minimum)) };
    case 'too_big':
      return { message: `must be at most ${Number(issue.maximum)}${UNITS[issue.origin] ?? ''}` };
    case 'custom': {
      const suggestion: unknown = issue.params?.['suggestion'];
      return { message: issue.message, suggestion: typeof suggestion === 'string' ? suggestion : undefined };
    }
    case 'invalid_format':
    case 'invalid_key':
    case 'invalid_element':
    case 'not_multiple_of':
    case 'unrecognized_keys':
      return { message: issue.message };
  }
}

function describeChoice(values: readonly string[]): string {
  return values.length === 1 ? `expected ${values[0]}` : `expected one of ${values.join(', ')}`;
}

function suggestChoice(input: unknown, values: readonly string[]): string | undefined {
  return typeof input === 'string' ? suggest(input, values) : undefined;
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function describeType(expected: string, input: unknown): string {
  const wanted = KINDS[expected] ?? expected;
  const quotes = expected === 'string' && (typeof input === 'number' || typeof input === 'boolean');
  const isKey = wanted === KINDS['object'] && typeof input === 'string' && KEY_WITHOUT_SPACE.test(input);
  const hint = quotes ? ' (put it in quotes)' : isKey ? ' (a space is missing after the colon)' : '';
  return `expected ${wanted}, got ${kindOf(input)}${hint}`;
}

/** `url:https://a`, which YAML reads as text. */
const KEY_WITHOUT_SPACE = /^[\w-]+:(?!\/\/)\S/;

/** The full form of an upstream that is written as its URL, or as an item of a list. */
function suggestMapping(path: Path, input: unknown): string | undefined {
  const [section, , ...more] = path;
  if (section !== 'upstreams' || more.length > 0) return undefined;
  const isUrl = typeof input === 'string' && parseUpstreamUrl(input).ok;
  const urls = Array.isArray(input) && input.length > 0 && input.every((item) => typeof item === 'string');
  // A url of a list may come from a variable.
  if (path.length === 2 && urls) return input.length === 1 ? '{url: …}' : '{urls: […]}';
  if (path.length === 2) return isUrl ? `{url: ${input}}` : undefined;
  return isUrl || Array.isArray(input) ? `{api: {url: ${isUrl ? input : '…'}}}` : undefined;
}

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' items' };

function describeMinimum(origin: string, minimum: number): string {
  if (minimum === 1 && origin in UNITS) return 'must not be empty';
  return `must be at least ${minimum}${UNITS[origin] ?? ''}`;
}

function kindOf(input: unknown): string {
  if (input === null) return 'nothing';
  if (Array.isArray(input)) return 'a list';
  if (typeof input === 'number' && !Number.isFinite(input)) return 'a number that is not finite';
  if (typeof input === 'number' && !Number.isInteger(input)) return 'a fraction';
  return KINDS[typeof input] ?? 'something else';
}

function toPath(path: readonly PropertyKey[]): Path {
  return path.map((step) => (typeof step === 'number' ? step : String(step)));
}
