// Compares a packed npm package with the registry. Prints `absent`, or `published` if the registry has this very tarball, so that a
// workflow can run a second time. Fails if the registry has a higher version, because `latest` would move back, or another tarball
// of this version, because npm accepts a version only once.
//
//   node scripts/release/check-registry.ts X.Y.Z TARBALL

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const [version, tarball] = process.argv.slice(2);
if (version === undefined || tarball === undefined) {
  fail('usage: node scripts/release/check-registry.ts X.Y.Z TARBALL', 2);
}
const versions = publishedVersions();
const higher = versions.find((one) => one.localeCompare(version, 'en', { numeric: true }) > 0);
if (higher !== undefined) {
  fail(`npm has tidegate ${higher}, which is higher than ${version}. Release a higher version.`, 1);
}
if (versions.includes(version)) {
  const own = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  const published = view(`tidegate@${version}`, 'dist.integrity');
  if (published !== own) fail(`npm has another tarball of tidegate ${version}. Release a higher version.`, 1);
  console.log('published');
} else {
  console.log('absent');
}

/** Returns no version if the registry does not know the package. */
function publishedVersions(): readonly string[] {
  const versions = view('tidegate', 'versions');
  return (Array.isArray(versions) ? versions : [versions]).filter((one) => typeof one === 'string');
}

/** Returns undefined if the registry has no such package. */
function view(name: string, field: string): unknown {
  const { status, stdout, stderr } = spawnSync('npm', ['view', name, field, '--json', '--prefer-online'], {
    encoding: 'utf8',
  });
  if (status === 0) return stdout.trim() === '' ? undefined : JSON.parse(stdout);
  if (/\bE404\b/.test(stdout + stderr)) return undefined;
  return fail(`npm view ${name} failed: ${stdout}${stderr}`, 2);
}

function fail(message: string, status: number): never {
  console.error(message);
  process.exit(status);
}
