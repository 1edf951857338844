import type { CodeSplittingOptions } from 'rolldown';

/** Returns information about a module; null if it does not exist. */
type Look = (id: string) => Imports | null;

interface Imports {
  readonly importedIds: readonly string[];
  readonly dynamicallyImportedIds: readonly string[];
}

/** An entry of the bundle, or a module of src that is imported dynamically. */
interface Loader {
  readonly path: string;
  /** The loader itself and all its static dependencies. */
  readonly needed: ReadonlySet<string>;
}

/**
 * Groups modules into one file for each set of loaders that have them once loaded. The bundler groups by the loaders that
 * need a module, which with about thirty loaders means more than eighty files for one start. Modules that the importer of
 * a loader has already loaded need no separate file.
 *
 * A loader that has a module has all of its imports. Therefore a file imports only files of the same or more loaders, no
 * module runs before its dependencies, and no loader loads a module that it does not need.
 *
 * @param begin paths of the entries of the bundle
 */
export function filesByLoader(begin: readonly string[]): CodeSplittingOptions {
  let files: ReadonlyMap<string, string> | undefined;
  return {
    // Otherwise a group would include its imports, even if other groups need them.
    includeDependenciesRecursively: false,
    groups: [
      {
        debugName: 'by loader',
        name(id, graph) {
          files ??= fileOfEach(begin, (of) => graph.getModuleInfo(of));
          // Entries get their own files anyway.
          return begin.includes(id) ? undefined : files.get(id);
        },
      },
    ],
  };
}

/** @returns file names by module id */
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

/** Yields for each loader the modules it needs and the modules that all of its importers have. */
function whatEachHas(begin: readonly string[], look: Look): Iterable<ReadonlySet<string>> {
  const loaders = findLoaders(begin, look);
  const loadedBy = new Map(loaders.map((each) => [each, loaders.filter((by) => isLoadedBy(by, each, look))]));
  for (const each of loaders) if (begin.includes(each.path)) loadedBy.set(each, []);
  const everything = new Set(loaders.flatMap(({ needed }) => [...needed]));
  const had = new Map<Loader, ReadonlySet<string>>(loaders.map((each) => [each, everything]));
  // Loaders may import each other in a cycle: start with everything, and reduce until nothing changes.
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
    // Dynamic imports of packages are rare, and left to the bundler.
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
