/**
 * The URL of a file or folder of the installation, such as `config/scenarios/`, whatever the working directory.
 * This file must stay one level below the package folder: it is in src/, and in dist/ when bundled.
 */
export function installedFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
