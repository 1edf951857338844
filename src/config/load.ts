import type { z } from 'zod';
import { checkPem } from './check-pem.ts';
import { crossCheck } from './cross-checks.ts';
import { draft } from './draft.ts';
import type { Given } from './given.ts';
import { lay } from './given.ts';
import { toFindings, valueAt } from './issues.ts';
import type { Finding, Mistake, Path } from './mistakes.ts';
import { comparePlaces } from './mistakes.ts';
import { pathKey } from './places.ts';
import type { Config } from './schema.ts';
import { ConfigSchema } from './schema.ts';
import type { Surroundings } from './substitute.ts';
import { readTree } from './tree.ts';

export type Loaded =
  | {
      readonly kind: 'ok';
      readonly config: Config;
      readonly warnings: readonly Mistake[];
      /** Values that came from variables and files, as they were written: by `pathKey`. What to print instead of them. */
      readonly substituted: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[] };

/**
 * Reads a configuration. Never throws; tells every mistake at once, in the order of the file. No mistake or warning
 * carries a value that came from a variable or a file.
 * @param file the name that mistakes carry
 * @param given settings of flags and variables, over those of the text
 */
export function loadConfig(
  text: string,
  file: string,
  surroundings: Surroundings,
  given: readonly Given[] = [],
): Loaded {
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
  const mistakes = [...wrong];
  const substituted = new Map(replaced);
  for (const setting of given) {
    const laid = lay(root, setting);
    if ('refused' in laid) {
      mistakes.push({
        file: setting.source,
        line: undefined,
        column: undefined,
        path: '',
        message: laid.refused,
        suggestion: undefined,
      });
    } else {
      places.give(laid.path, setting.source);
      for (const key of replaced.keys()) if (startsWith(key, laid.path)) substituted.delete(key);
    }
  }
  implyRoute(root);

  const { config, issues } = parse(root, substituted);
  const parts = draft(root);
  const checked = [...crossCheck(parts, (path) => places.has(path)), ...checkPem(parts, surroundings.readFile)];
  const locate = (findings: readonly Finding[]): Mistake[] =>
    findings
      .filter(({ path }) => !failed.has(pathKey(path)))
      .map((finding) => places.locate(conceal(finding, substituted)));
  mistakes.push(...locate([...toFindings(issues, root), ...checked.filter(({ level }) => level === 'mistake')]));
  if (config === undefined || mistakes.length > 0) {
    return { kind: 'mistakes', mistakes: mistakes.toSorted(comparePlaces) };
  }
  return { kind: 'ok', config, warnings: locate(checked).toSorted(comparePlaces), substituted };
}

/** With one upstream and no routes there is nothing to choose. */
function implyRoute(root: object): void {
  const routes = valueAt(root, ['routes']);
  const [name, ...others] = Object.keys(valueAt(root, ['upstreams']) ?? {});
  if (name === undefined || others.length > 0) return;
  if (routes === undefined || (Array.isArray(routes) && routes.length === 0)) {
    Reflect.set(root, 'routes', [{ path: '/', upstream: name }]);
  }
}

type Parsed = { readonly config: Config | undefined; readonly issues: readonly z.core.$ZodIssue[] };

/** A substituted value is text; where a number, true or false is wanted, it is read as one. */
function parse(root: object, substituted: ReadonlyMap<string, string>): Parsed {
  const first = ConfigSchema.safeParse(root);
  if (first.success) return { config: first.data, issues: [] };
  let retyped = false;
  for (const issue of first.error.issues) {
    if (issue.code !== 'invalid_type' || !substituted.has(JSON.stringify(issue.path))) continue;
    const value = retype(valueAt(root, issue.path.map(String)), issue.expected);
    if (value === undefined) continue;
    const holder = valueAt(root, issue.path.slice(0, -1).map(String));
    if (typeof holder === 'object' && holder !== null) retyped = Reflect.set(holder, issue.path.at(-1) ?? '', value);
  }
  if (!retyped) return { config: undefined, issues: first.error.issues };
  const second = ConfigSchema.safeParse(root);
  return second.success ? { config: second.data, issues: [] } : { config: undefined, issues: second.error.issues };
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

function startsWith(key: string, path: Path): boolean {
  const parsed: unknown = JSON.parse(key);
  return Array.isArray(parsed) && path.every((step, i) => parsed[i] === step);
}
