/** Lists in the place of mappings, and mappings in the place of lists: one message for each, without its consequences. */
import { isMapping, valueAt } from '../values/plain-object.ts';
import type { KnownKeys } from './known-keys.ts';
import type { Mistake, Path } from './mistakes.ts';
import type { RawDocument } from './read-document.ts';
import { relocate } from './source-map.ts';

/**
 * Converts each such value to the expected kind, so that its own mistakes are reported. Leaves lists with several items of the
 * same keys, and lists of upstreams without names, to the schema.
 * @param raw changed in place
 * @param isSetting true for a key that cannot be a name at `path`
 * @returns a mistake for each conversion
 */
export function convertKinds(
  raw: RawDocument,
  keys: KnownKeys,
  isSetting: (path: Path, key: string) => boolean,
  path: Path = [],
): Mistake[] {
  const value = valueAt(raw.root, path);
  const expected = path.length === 0 ? undefined : keys.expectedKind(path);
  const mistakes: Mistake[] = [];
  if (expected === 'mapping' && Array.isArray(value)) {
    const merged = mergeItems(value, (key) => isSetting(path, key));
    if (merged === undefined) return [];
    mistakes.push(report(raw, path, 'expected a mapping, got a list: write its keys without "- " or [ ]'));
    replace(raw, path, merged);
    for (const [i, item] of value.entries()) {
      for (const key of isMapping(item) ? Object.keys(item) : []) relocate(raw, [...path, i, key], [...path, key]);
    }
  } else if (expected === 'list' && isMapping(value) && keys.expectedKind([...path, 0]) === 'mapping') {
    mistakes.push(
      report(raw, path, 'expected a list, got a mapping: write "- " before its first key, or [ ] around it'),
    );
    replace(raw, path, [value]);
    for (const key of Object.keys(value)) relocate(raw, [...path, key], [...path, 0, key]);
  }
  const now = valueAt(raw.root, path);
  const steps = Array.isArray(now) ? now.keys() : isMapping(now) ? Object.keys(now) : [];
  return [...mistakes, ...[...steps].flatMap((step) => convertKinds(raw, keys, isSetting, [...path, step]))];
}

/** One mapping of all items; undefined if an item is no mapping, or if two have the same key. */
function mergeItems(
  items: readonly unknown[],
  isSetting: (key: string) => boolean,
): Record<string, unknown> | undefined {
  const merged: Record<string, unknown> = {};
  for (const item of items) {
    if (!isMapping(item)) return undefined;
    for (const [key, value] of Object.entries(item)) {
      if (Object.hasOwn(merged, key) || isSetting(key)) return undefined;
      merged[key] = value;
    }
  }
  return items.length === 0 ? undefined : merged;
}

function report({ sourceMap }: RawDocument, path: Path, message: string): Mistake {
  return sourceMap.locate({ path, at: 'value', message });
}

function replace({ root }: RawDocument, path: Path, value: unknown): void {
  const parent = valueAt(root, path.slice(0, -1));
  if (typeof parent === 'object' && parent !== null) Reflect.set(parent, path.at(-1) ?? '', value);
}
