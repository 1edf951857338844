import type { CodeSplittingOptions } from 'rolldown';

/** What is known of a module; null where there is none. */
type Look = (id: string) => Imports | null;

interface Imports {
  readonly importedIds: readonly string[];
  readonly dynamicallyImportedIds: readonly string[];
}

/** What the bundle begins with, or a module of ours that is imported where it is wanted. */
interface Loader {
  readonly path: string;
  /** All that runs before what it holds, and itself. */
  readonly needed: ReadonlySet<string>;
}

/**
 * Joins modules in one file for each set of loaders that have them when they are loaded. The bundler does so by those that need them,
 * which with some thirty loaders is more than eighty files for one start, to be found, read and linked one by one; but what whoever loads
 * a module has already need not lie apart from what that module needs.
 *
 * Whoever has a module has all that it imports: so a file imports only files of as many loaders or more, none runs before
 * what it needs, and nobody loads what it does not need.
 *
 * @param begin paths of what the bundle begins with
 */
export function filesByLoader(begin: readonly string[]): CodeSplittingOptions {
  let files: ReadonlyMap<string, string> | undefined;
  return {
    // A group takes what it imports along otherwise, whoever else needs it.
    includeDependenciesRecursively: false,
    groups: [
      {
        debugName: 'by loader',
        name(id, graph) {
          files ??= fileOfEach(begin, (of) => graph.getModuleInfo(of));
          // What is begun with has a file in any case, and needs no second one.
          return begin.includes(id) ? undefined : files.get(id);
        },
      },
    ],
  };
}

/** @returns by the module's id */
function fileOfEach(begin: readonly string[], look: Look): ReadonlyMap<string, string> {
  const owners = new Map<string, number[]>();
  for (const [loader, had] of [...whatEachHas(begin, look)].entries()) {
    for (const id of had) owners.set(id, [...(owners.get(id) ?? []), loader]);
  }
  const names = new Map<string, string>();
  const files = new Map<string, string>();
  for (const [id, loaders] of owners) {
    const set = loaders.join();
    const name = names.get(set) ?? `part-${names.size + 1}`;
    names.set(set, name);
    files.set(id, name);
  }
  return files;
}

/** Of each loader in turn: what it needs, and what all of those have that load it. */
function whatEachHas(begin: readonly string[], look: Look): Iterable<ReadonlySet<string>> {
  const loaders = findLoaders(begin, look);
  const loadedBy = new Map(loaders.map((each) => [each, loaders.filter((by) => isLoadedBy(by, each, look))]));
  for (const each of loaders) if (begin.includes(each.path)) loadedBy.set(each, []);
  const everything = new Set(loaders.flatMap(({ needed }) => [...needed]));
  const had = new Map<Loader, ReadonlySet<string>>(loaders.map((each) => [each, everything]));
  // Some load each other in a circle: all are taken to have everything, until none has too much.
  for (let hasChanged = true; hasChanged; ) {
    hasChanged = false;
    for (const each of loaders) {
      const before = (loadedBy.get(each) ?? []).map((by) => had.get(by) ?? everything);
      const isThere = (id: string): boolean => before.length > 0 && before.every((given) => given.has(id));
      const next = new Set(Array.from(everything).filter((id) => each.needed.has(id) || isThere(id)));
      hasChanged ||= next.size !== had.get(each)?.size;
      had.set(each, next);
    }
  }
  return had.values();
}

function findLoaders(begin: readonly string[], look: Look): readonly Loader[] {
  const paths = new Set(begin);
  for (const id of reachedFrom(begin, (of) => [...of.importedIds, ...of.dynamicallyImportedIds], look)) {
    // What packages load so is seldom wanted, and stays as the bundler has it.
    if (!id.includes('/node_modules/')) for (const path of look(id)?.dynamicallyImportedIds ?? []) paths.add(path);
  }
  return Array.from(paths, (path) => ({ path, needed: reachedFrom([path], ({ importedIds }) => importedIds, look) }));
}

function isLoadedBy({ needed }: Loader, { path }: Loader, look: Look): boolean {
  for (const id of needed) if (look(id)?.dynamicallyImportedIds.includes(path) === true) return true;
  return false;
}

function reachedFrom(
  paths: readonly string[],
  by: (of: Imports) => readonly string[],
  look: Look,
): ReadonlySet<string> {
  const reached = new Set(paths);
  for (const id of reached) {
    const found = look(id);
    if (found !== null) for (const next of by(found)) reached.add(next);
  }
  return reached;
}
