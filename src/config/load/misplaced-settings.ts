/** Settings one level too high or too deep, the usual mistake of indentation: one message for each, without its consequences. */
import { isMapping, valueAt } from '../values/plain-object.ts';
import { ConfigSchema } from '../schema/config-schema.ts';
import { convertKinds } from './list-or-mapping.ts';
import type { KnownKeys } from './known-keys.ts';
import type { Mistake, Path } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import type { RawDocument } from './read-document.ts';
import { relocate } from './source-map.ts';

type Mapping = Record<string, unknown>;

/** The name of an upstream in messages and repairs if the file has none. */
const SOME_NAME = 'api';

const ROOT_KEYS: ReadonlySet<string> = new Set(Object.keys(ConfigSchema.shape));
const UPSTREAM_KEYS: ReadonlySet<string> = new Set(Object.keys(ConfigSchema.shape.upstreams.unwrap().valueType.shape));

/**
 * Moves settings to where they belong, so that their own mistakes are reported and no others follow from their place.
 * @param raw changed in place
 * @returns a mistake for each move
 */
export function moveMisplacedSettings(raw: RawDocument, keys: KnownKeys): Mistake[] {
  return [
    ...convertKinds(raw, keys, (path, key) => path.length === 1 && path[0] === 'upstreams' && UPSTREAM_KEYS.has(key)),
    ...moveFromNames(raw),
    ...moveFromRoot(raw),
    ...moveBelowEmptyKeys(raw, keys, []),
    ...correctKeys(raw, keys, []),
  ];
}

/** `upstreams: {api:, url: …}`: settings in the place of names. */
function moveFromNames(raw: RawDocument): Mistake[] {
  const upstreams = mappingAt(raw.root, ['upstreams']);
  const names = Object.keys(upstreams ?? {});
  const misplaced = names.filter((name) => UPSTREAM_KEYS.has(name) && !isUpstream(upstreams?.[name]));
  const [first] = misplaced;
  if (first === undefined) return [];
  const before = names.slice(0, names.indexOf(first)).findLast((name) => !misplaced.includes(name));
  const owner = before ?? names.find((name) => !misplaced.includes(name));
  const message = describeSettings(misplaced);
  const mistake =
    owner === undefined
      ? report(raw, ['upstreams', first], `${message}, which needs a name`, exampleOf(first))
      : report(raw, ['upstreams', first], `${message}: ${indentBelow(misplaced, owner)}`);
  for (const key of misplaced) move(raw, ['upstreams', key], ['upstreams', owner ?? SOME_NAME, key]);
  return [mistake];
}

/** `url: …` or `api: {url: …}` at the top level. */
function moveFromRoot(raw: RawDocument): Mistake[] {
  const unknown = Object.entries(raw.root).filter(([key]) => !ROOT_KEYS.has(key));
  const upstreams = unknown.flatMap(([key, value]) => (isUpstream(value) ? [key] : []));
  const mistakes = upstreams.map((name) => report(raw, [name], 'an upstream: indent it below upstreams'));
  for (const name of upstreams) move(raw, [name], ['upstreams', name]);
  const settings = unknown.flatMap(([key, value]) => (UPSTREAM_KEYS.has(key) && !isUpstream(value) ? [key] : []));
  const [first] = settings;
  if (first === undefined) return mistakes;
  const name = Object.keys(mappingAt(raw.root, ['upstreams']) ?? {}).at(-1);
  const message = describeSettings(settings);
  mistakes.push(
    name === undefined
      ? report(raw, [first], message, `upstreams: {${exampleOf(first)}}`)
      : report(raw, [first], `${message}: ${indentBelow(settings, `upstreams.${name}`)}`),
  );
  for (const key of settings) move(raw, [key], ['upstreams', name ?? SOME_NAME, key]);
  return mistakes;
}

/** `{retry:, attempts: 3}`: an empty key, with its settings beside it. */
function moveBelowEmptyKeys(raw: RawDocument, keys: KnownKeys, path: Path): Mistake[] {
  const mapping = valueAt(raw.root, path);
  if (Array.isArray(mapping)) return mapping.flatMap((_, i) => moveBelowEmptyKeys(raw, keys, [...path, i]));
  if (!isMapping(mapping)) return [];
  const mistakes: Mistake[] = [];
  for (const [empty, value] of Object.entries(mapping)) {
    if (value !== null) continue;
    const below = keys.keysAt([...path, empty]);
    const here = keys.keysAt(path);
    const misplaced = Object.keys(mapping).filter((key) => below.has(key) && !here.has(key));
    const [first] = misplaced;
    if (first === undefined) continue;
    mistakes.push(
      report(raw, [...path, first], `${describeKeys(misplaced)} of ${empty}: ${indentBelow(misplaced, empty)}`),
    );
    for (const key of misplaced) move(raw, [...path, key], [...path, empty, key]);
  }
  const children = Object.keys(mapping).flatMap((key) => moveBelowEmptyKeys(raw, keys, [...path, key]));
  return [...mistakes, ...children];
}

/** `listen: {tls: …, upstreams: …}`: a key that is unknown here, and known and absent further up; or a misspelt key. */
function correctKeys(raw: RawDocument, keys: KnownKeys, path: Path): Mistake[] {
  const mapping = valueAt(raw.root, path);
  // The keys of a list that has to be a mapping are not misplaced.
  if (Array.isArray(mapping) && keys.expectedKind(path) === 'mapping') return [];
  if (Array.isArray(mapping)) return mapping.flatMap((_, i) => correctKeys(raw, keys, [...path, i]));
  if (!isMapping(mapping)) return [];
  const here = keys.keysAt(path);
  return Object.keys(mapping).flatMap((key) => {
    if (here.has(key) || keys.hasAnyKey(path)) return correctKeys(raw, keys, [...path, key]);
    const near = keys.suggestKey(path, key);
    if (near !== undefined) return correctMisspelt(raw, keys, [...path, key], near);
    for (let length = path.length - 1; length >= 0; length -= 1) {
      const above = path.slice(0, length);
      if (!keys.keysAt(above).has(key) || valueAt(raw.root, [...above, key]) !== undefined) continue;
      const owner = length === 0 ? 'the top level' : formatPath(above);
      const mistake = report(raw, [...path, key], `a key of ${owner}: indent it as far as ${String(path[length])}`);
      move(raw, [...path, key], [...above, key]);
      return [mistake];
    }
    return [];
  });
}

/** `urll: …`: without this, the correct key would be reported as missing. */
function correctMisspelt(raw: RawDocument, keys: KnownKeys, path: Path, near: string): Mistake[] {
  const above = path.slice(0, -1);
  const isSibling = keys.keysAt(above).has(near) && valueAt(raw.root, [...above, near]) === undefined;
  const isMisspelt = isSibling && keys.whyUnsupported(path) === undefined;
  if (!isMisspelt || [String(path.at(-1)), near].some(needsOtherKind)) return [];
  const mistake = report(raw, path, 'unknown key', near);
  move(raw, path, [...above, near]);
  return [mistake, ...correctKeys(raw, keys, [...above, near])];

  function needsOtherKind(key: string): boolean {
    return keys.findDiscriminator(above, key) !== undefined;
  }
}

function isUpstream(value: unknown): boolean {
  return isMapping(value) && ['url', 'urls', 'provider'].some((key) => Object.hasOwn(value, key));
}

function describeSettings(keys: readonly string[]): string {
  return keys.length === 1 ? 'a setting of an upstream' : `${listOf(keys)} are settings of an upstream`;
}

function describeKeys(keys: readonly string[]): string {
  return keys.length === 1 ? 'a key' : `${listOf(keys)} are keys`;
}

function indentBelow(keys: readonly string[], owner: string): string {
  return `indent ${keys.length === 1 ? 'it' : 'them'} below ${owner}`;
}

function listOf(keys: readonly string[]): string {
  return `${keys.slice(0, -1).join(', ')} and ${keys.at(-1) ?? ''}`;
}

function exampleOf(setting: string): string {
  return `${SOME_NAME}: {${setting}: …}`;
}

function report({ sourceMap }: RawDocument, path: Path, message: string, suggestion?: string): Mistake {
  return sourceMap.locate({ path, at: 'key', message, suggestion });
}

function mappingAt(root: object, path: Path): Mapping | undefined {
  const value = valueAt(root, path);
  return isMapping(value) ? value : undefined;
}

/** Creates the mappings on the way. Leaves an existing value in place. */
function move(raw: RawDocument, from: Path, to: Path): void {
  const { root } = raw;
  const value = valueAt(root, from);
  const origin = valueAt(root, from.slice(0, -1));
  if (isMapping(origin)) Reflect.deleteProperty(origin, from.at(-1) ?? '');
  let at = root;
  for (const step of to.slice(0, -1)) {
    const next = valueAt(at, [step]) ?? {};
    if (typeof next !== 'object') return;
    Reflect.set(at, step, next);
    at = next;
  }
  const key = to.at(-1) ?? '';
  if (Object.hasOwn(at, key)) return;
  Reflect.set(at, key, value);
  relocate(raw, from, to);
}
