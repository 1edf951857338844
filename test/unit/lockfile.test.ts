import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const ROOT = join(import.meta.dirname, '../..');
const { packages } = readJson('package-lock.json') as { packages: Readonly<Record<string, LockedPackage>> };
const locked = Object.entries(packages).filter(([place]) => place !== '');

describe('the lockfile', () => {
  // A tool whose package for some platform is not in the registry yet installs well once, and then `npm ci` calls the
  // lockfile out of sync: on every platform, with npm 11.
  test('has every platform of every tool', () => {
    const missing = Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isLocked(place, name)),
    );
    expect(missing).toEqual([]);
  });

  test('knows the content of every package', () => {
    expect(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([place]) => place)).toEqual([]);
  });

  test('leaves the registry to the one who installs', () => {
    expect(locked.filter(([, { resolved }]) => resolved !== undefined).map(([place]) => place)).toEqual([]);
  });

  test('has one undici', () => {
    expect(locked.map(([place]) => place).filter((place) => /(^|\/)node_modules\/undici$/.test(place))).toEqual([
      'node_modules/undici',
    ]);
  });

  test('brings one version of Node', () => {
    const versions = locked
      .filter(([place]) => place.startsWith('node_modules/node-linux-'))
      .map(([, { version }]) => version);
    expect(versions).toHaveLength(2);
    expect(new Set(versions).size).toBe(1);
  });
});

/** Node's lookup: in the package's own folder, then up. */
function isLocked(place: string, name: string): boolean {
  for (let folder = place; ; folder = folder.slice(0, folder.lastIndexOf('/node_modules/'))) {
    if (packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (!folder.includes('/node_modules/')) break;
  }
  return packages[`node_modules/${name}`] !== undefined;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
}
