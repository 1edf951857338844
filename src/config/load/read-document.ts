import type { z } from 'zod';
import type { RuleFinding } from '../rules/rule-finding.ts';
import { toFindings } from './schema-issues.ts';
import { isMapping, valueAt } from '../values/plain-object.ts';
import type { KnownKeys } from './known-keys.ts';
import type { Finding, Mistake, Path, SourcePosition } from './mistakes.ts';
import { comparePositions } from './mistakes.ts';
import type { SourceMap } from './source-map.ts';
import { pathKey } from './source-map.ts';
import type { ConfigEnvironment } from './substitute.ts';
import { parseYamlTree } from './yaml-tree.ts';

/** A kind of file: its schema, its keys and its rules across keys. */
export interface DocumentLanguage<S extends z.ZodType> {
  readonly schema: S;
  readonly keys: KnownKeys;
  /** Rules across keys. @param root as written, a mapping, valid or not */
  readonly check: (root: object, sourceMap: SourceMap) => Iterable<RuleFinding>;
}

/** A mapping as written, before it is decoded. */
export interface RawDocument {
  /** May be changed in place. */
  readonly root: object;
  readonly sourceMap: SourceMap;
  /** As in `DocumentResult`. */
  readonly substituted: Map<string, string>;
  /** Paths, by `pathKey`, whose value is unknown because of a mistake: nothing more is reported of them. */
  readonly failedPaths: Set<string>;
}

export type DocumentResult<T> =
  | {
      readonly kind: 'ok';
      readonly value: T;
      readonly warnings: readonly Mistake[];
      /** References to variables and files, as they were written: by `pathKey`. Printed in place of the values. */
      readonly substituted: ReadonlyMap<string, string>;
      /** True if the file, a flag or a variable sets the path; false for defaults and presets. */
      readonly isWritten: (path: Path) => boolean;
      /** Where the path is written; for a default, the nearest key above it. */
      readonly positionOf: (path: Path) => SourcePosition;
    }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[] };

/**
 * Reads a file. Never throws; returns all mistakes at once, in the order of the file. No mistake or warning contains a
 * value from a variable or a file.
 * @param file its name in the mistakes
 * @param prepare changes the mapping before it is decoded, and returns the mistakes of doing so
 */
export function readDocument<S extends z.ZodType>(
  text: string,
  file: string,
  environment: ConfigEnvironment,
  { schema, keys, check }: DocumentLanguage<S>,
  prepare: (raw: RawDocument) => readonly Mistake[] = () => [],
): DocumentResult<z.output<S>> {
  const tree = parseYamlTree(text, file, environment);
  if (tree.kind === 'invalid') return { kind: 'mistakes', mistakes: tree.mistakes };
  const { value, sourceMap, mistakes: yamlMistakes } = tree;
  // An empty file is an empty mapping.
  const root = value === null ? {} : value;
  if (!isMapping(root)) {
    return {
      kind: 'mistakes',
      mistakes: [...yamlMistakes, sourceMap.locate({ path: [], at: 'value', message: 'expected a mapping' })],
    };
  }
  const substituted = new Map(tree.substituted);
  const failedPaths = new Set(tree.failedPaths);
  const mistakes = [...yamlMistakes, ...prepare({ root, sourceMap, substituted, failedPaths })];

  const parsed = parseWithRetyping(schema, root, substituted);
  const checked = [...check(root, sourceMap)];
  const locate = (findings: readonly Finding[]): Mistake[] =>
    findings
      .filter(({ path }) => !failedPaths.has(pathKey(path)))
      .map((finding) => sourceMap.locate(hideSuggestion(finding, substituted)));
  const issues = parsed.success ? [] : parsed.error.issues;
  mistakes.push(...locate([...toFindings(issues, root, keys), ...checked.filter(({ level }) => level === 'mistake')]));
  if (!parsed.success || mistakes.length > 0) {
    return { kind: 'mistakes', mistakes: mistakes.toSorted(comparePositions) };
  }
  return {
    kind: 'ok',
    value: parsed.data,
    warnings: locate(checked).toSorted(comparePositions),
    substituted,
    isWritten: (path) => sourceMap.isWritten(path),
    positionOf: (path) => sourceMap.locate({ path, at: 'value', message: '' }),
  };
}

/** A substituted value is text; if the schema expects a number or a boolean, the text is converted. */
function parseWithRetyping<S extends z.ZodType>(
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
    const parent = valueAt(root, issue.path.slice(0, -1).map(String));
    if (typeof parent === 'object' && parent !== null) retyped = Reflect.set(parent, issue.path.at(-1) ?? '', value);
  }
  return retyped ? schema.safeParse(root) : first;
}

function retype(text: unknown, expected: string): number | boolean | undefined {
  if (expected === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  const numeric = expected === 'number' || expected === 'int';
  return numeric && typeof text === 'string' && /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** A suggestion repeats the value, so a substituted value gets none. */
function hideSuggestion(finding: Finding, substituted: ReadonlyMap<string, string>): Finding {
  return substituted.has(pathKey(finding.path)) ? { ...finding, suggestion: undefined } : finding;
}
