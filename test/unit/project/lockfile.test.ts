import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const ROOT = join(import.meta.dirname, '../../..');
const { packages } = readJson('package-lock.json') as { packages: Readonly<Record<string, LockedPackage>> };
const locked = Object.entries(packages).filter(([place]) => place !== '');

describe('the lockfile', () => {
  // A tool whose package for some platform is not yet in the registry installs once without an error, but then `npm ci`
  // reports the lockfile out of sync on every platform, with npm 11.
  test('contains every platform of every tool', () => {
    const missing = Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isLocked(place, name)),
    );
    expect(missing).toEqual([]);
  });

  test('has a hash for every package', () => {
    expect(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([place]) => place)).toEqual([]);
  });

  test('contains no registry addresses, which the installer chooses', () => {
    expect(locked.filter(([, { resolved }]) => resolved !== undefined).map(([place]) => place)).toEqual([]);
  });

  test('contains one version of undici', () => {
    expect(locked.map(([place]) => place).filter((place) => /(^|\/)node_modules\/undici$/.test(place))).toEqual([
      'node_modules/undici',
    ]);
  });

  test('contains one version of Node', () => {
    const versions = locked
      .filter(([place]) => place.startsWith('node_modules/node-linux-'))
      .map(([, { version }]) => version);
    expect(versions).toHaveLength(2);
    expect(new Set(versions).size).toBe(1);
  });
});

/** Node's lookup: in the package's own folder, then upwards. */
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
