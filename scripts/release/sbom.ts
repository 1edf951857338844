// Writes the software bill of materials (CycloneDX) of the packages that the program contains.
//
//   node scripts/release/sbom.ts FILE
//
// `npm sbom --omit=dev` of npm 11.19 also omits dependencies that a development tool needs too, such as yaml and zod. So npm
// lists the packages of a manifest without development dependencies here, after it has removed the others from the lockfile.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** Fields of package.json that concern development, and Node, which `npm ci` installs for the scripts of this project. */
const OMITTED: ReadonlySet<string> = new Set(['devDependencies', 'optionalDependencies', 'scripts']);

function npm(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('npm', [...args, '--package-lock-only', '--offline'], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${error?.message ?? ''}${stdout}${stderr}`);
  return stdout;
}

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node scripts/release/sbom.ts FILE');
  process.exit(2);
}
const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
if (!(manifest instanceof Object)) throw new TypeError('package.json holds no object');
const place = mkdtempSync(join(tmpdir(), 'tidegate-sbom-'));
try {
  // npm names the described component after the folder.
  const folder = join(place, String(Reflect.get(manifest, 'name')));
  mkdirSync(folder);
  const kept = Object.entries(manifest).filter(([key]) => !OMITTED.has(key));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(Object.fromEntries(kept)));
  cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'));
  npm(folder, 'prune', '--ignore-scripts', '--no-audit', '--no-fund');
  writeFileSync(resolve(file), npm(folder, 'sbom', '--sbom-format=cyclonedx', '--sbom-type=application'));
} finally {
  rmSync(place, { recursive: true });
}
