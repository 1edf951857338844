/**
 * A file or folder that comes with the program, found from wherever it is run: `config/scenarios/`, say.
 * This file is one level below the package's own folder wherever it ends up: in src/ or, bundled, in dist/.
 */
export function installed(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
