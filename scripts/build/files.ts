import type { CodeSplittingOptions } from 'rolldown';

/** Paths of the modules that each begins with. */
export type Loaders = Readonly<Record<string, readonly string[]>>;

type ImportsOf = (id: string) => readonly string[];

/**
 * Joins modules in one file for each set of loaders that need them. By itself the bundler does so for each set of entries; with
 * every command imported where it is wanted, that is a hundred small files, to be found, read and linked one by one. What no
 * loader needs stays as the bundler has it.
 *
 * Whoever needs a module needs all that it imports: so a file imports only files of as many loaders or more, none runs before
 * what it needs, and no loader gets what it does not need.
 *
 * @throws Error, while the bundle is made, for a path that is none of its modules
 */
export function filesByLoader(loaders: Loaders): CodeSplittingOptions {
  let files: ReadonlyMap<string, string> | undefined;
  return {
    // A group takes what it imports along otherwise, whoever else needs it.
    includeDependenciesRecursively: false,
    groups: [
      {
        debugName: 'by loader',
        name(id, graph) {
          files ??= fileOfEach(loaders, (of) => {
            const found = graph.getModuleInfo(of);
            if (found === null) {
              throw new Error(`${of} is not part of the bundle: mend the loaders in scripts/build.ts`);
            }
            return found.importedIds;
          });
          // What is begun with has effects, and a file of its own: nobody else may begin it.
          return graph.getModuleInfo(id)?.isEntry === true ? undefined : files.get(id);
        },
      },
    ],
  };
}

/** @returns by the module's id, the names of its loaders */
function fileOfEach(loaders: Loaders, importsOf: ImportsOf): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [loader, paths] of Object.entries(loaders)) {
    for (const id of reachedFrom(paths, importsOf)) {
      const others = files.get(id);
      files.set(id, others === undefined ? loader : `${others}-${loader}`);
    }
  }
  return files;
}

/** All that runs before what these modules hold. */
function reachedFrom(paths: readonly string[], importsOf: ImportsOf): ReadonlySet<string> {
  const reached = new Set(paths);
  for (const id of reached) for (const imported of importsOf(id)) reached.add(imported);
  return reached;
}
