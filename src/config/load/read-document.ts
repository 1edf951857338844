import type { z } from 'zod';
import type { Checked } from '../rules/rule-finding.ts';
import { toFindings, valueAt } from './schema-issues.ts';
import type { KnownKeys } from './known-keys.ts';
import type { Finding, Mistake, Path } from './mistakes.ts';
import { comparePlaces } from './mistakes.ts';
import type { Places } from './source-map.ts';
import { pathKey } from './source-map.ts';
import type { Surroundings } from './substitute.ts';
import { readTree } from './yaml-tree.ts';

/** What can be written in a kind of file. */
export interface Language<S extends z.ZodType> {
  readonly schema: S;
  readonly keys: KnownKeys;
  /** What no key can know alone. @param root as written, a mapping, sound or not */
  readonly check: (root: object, places: Places) => Iterable<Checked>;
}

/** A mapping as written, before it is understood. */
export interface Drafted {
  /** May be changed in place. */
  readonly root: object;
  readonly places: Places;
  /** As `Document.substituted`. */
  readonly substituted: Map<string, string>;
}

export type Document<T> =
  | {
      readonly kind: 'ok';
      readonly value: T;
      readonly warnings: readonly Mistake[];
      /** Values that came from variables and files, as they were written: by `pathKey`. What to print instead of them. */
      readonly substituted: ReadonlyMap<string, string>;
      /** Whether this was written, in the file or by a flag or variable; false for defaults and presets. */
      readonly isWritten: (path: Path) => boolean;
    }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[] };

/**
 * Reads a file of a language. Never throws; tells every mistake at once, in the order of the file. No mistake or warning
 * carries a value that came from a variable or a file.
 * @param file the name that mistakes carry
 * @param prepare adds to what is written, and says what of that cannot be done
 */
export function readDocument<S extends z.ZodType>(
  text: string,
  file: string,
  surroundings: Surroundings,
  { schema, keys, check }: Language<S>,
  prepare: (drafted: Drafted) => readonly Mistake[] = () => [],
): Document<z.output<S>> {
  const { value, places, mistakes: wrong, substituted: replaced, failed } = readTree(text, file, surroundings);
  // An empty file is an empty mapping.
  const root = value === null ? {} : value;
  if (root === undefined) return { kind: 'mistakes', mistakes: wrong };
  if (typeof root !== 'object' || Array.isArray(root)) {
    return {
      kind: 'mistakes',
      mistakes: [...wrong, places.locate({ path: [], at: 'value', message: 'expected a mapping' })],
    };
  }
  const substituted = new Map(replaced);
  const mistakes = [...wrong, ...prepare({ root, places, substituted })];

  const parsed = parse(schema, root, substituted);
  const checked = [...check(root, places)];
  const locate = (findings: readonly Finding[]): Mistake[] =>
    findings
      .filter(({ path }) => !failed.has(pathKey(path)))
      .map((finding) => places.locate(conceal(finding, substituted)));
  const issues = parsed.success ? [] : parsed.error.issues;
  mistakes.push(...locate([...toFindings(issues, root, keys), ...checked.filter(({ level }) => level === 'mistake')]));
  if (!parsed.success || mistakes.length > 0) {
    return { kind: 'mistakes', mistakes: mistakes.toSorted(comparePlaces) };
  }
  return {
    kind: 'ok',
    value: parsed.data,
    warnings: locate(checked).toSorted(comparePlaces),
    substituted,
    isWritten: (path) => places.has(path),
  };
}

/** A substituted value is text; where a number, true or false is wanted, it is read as one. */
function parse<S extends z.ZodType>(
  schema: S,
  root: object,
  substituted: ReadonlyMap<string, string>,
): z.ZodSafeParseResult<z.output<S>> {
  const first = schema.safeParse(root);
  if (first.success) return first;
  let retyped = false;
  for (const issue of first.error.issues) {
    if (issue.code !== 'invalid_type' || !substituted.has(JSON.stringify(issue.path))) continue;
    const value = retype(valueAt(root, issue.path.map(String)), issue.expected);
    if (value === undefined) continue;
    const holder = valueAt(root, issue.path.slice(0, -1).map(String));
    if (typeof holder === 'object' && holder !== null) retyped = Reflect.set(holder, issue.path.at(-1) ?? '', value);
  }
  return retyped ? schema.safeParse(root) : first;
}

function retype(text: unknown, expected: string): number | boolean | undefined {
  if (expected === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  const numeric = expected === 'number' || expected === 'int';
  return numeric && typeof text === 'string' && /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** A suggestion repeats what was written. */
function conceal(finding: Finding, substituted: ReadonlyMap<string, string>): Finding {
  return substituted.has(pathKey(finding.path)) ? { ...finding, suggestion: undefined } : finding;
}
