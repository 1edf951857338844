// Prepares and cleans up for `npm pack`; see docs/package.md.
//
//   node scripts/package.ts before     builds dist/ with types, and replaces package.json by the published manifest
//   node scripts/package.ts after      restores package.json
//   node scripts/package.ts refuse     fails, because npm publishes the manifest that it reads after packing, which would be
//                                      that of the checkout with all its dependencies

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { published } from './build/published.ts';

const ROOT = join(import.meta.dirname, '..');
const MANIFEST = join(ROOT, 'package.json');
/** The original package.json meanwhile. */
const KEPT = join(ROOT, 'package.json.kept');

/** Restores package.json if it is what `prepare` made of the kept one. An interrupted `npm pack` may have left an old one. */
function restore(): void {
  if (!existsSync(KEPT)) return;
  const kept = readFileSync(KEPT, 'utf8');
  const current = readFileSync(MANIFEST, 'utf8');
  if (current === publishedText(kept)) return renameSync(KEPT, MANIFEST);
  if (current === kept) return rmSync(KEPT);
  console.error(
    'An interrupted npm pack left package.json.kept, and package.json has changed since. Remove package.json.kept, or move it to package.json.',
  );
  process.exit(1);
}

function publishedText(manifest: string): string {
  return `${JSON.stringify(published(JSON.parse(manifest)), null, 2)}\n`;
}

function prepare(): void {
  restore(); // an interrupted `npm pack` leaves the published manifest
  const build = [join(ROOT, 'scripts/build.ts'), '--types'];
  // Standard output is reserved for the report of `npm pack --json`.
  const { status } = spawnSync(process.execPath, build, { cwd: ROOT, stdio: ['ignore', process.stderr, 'inherit'] });
  if (status !== 0) process.exit(1);
  const text = publishedText(readFileSync(MANIFEST, 'utf8'));
  renameSync(MANIFEST, KEPT);
  writeFileSync(MANIFEST, text);
}

switch (process.argv[2]) {
  case 'before':
    prepare();
    break;
  case 'after':
    restore();
    break;
  case 'refuse':
    console.error('npm publish needs a tarball: run `npm pack`, then `npm publish tidegate-X.Y.Z.tgz`.');
    process.exitCode = 1;
    break;
  default:
    console.error('usage: node scripts/package.ts before|after|refuse');
    process.exitCode = 2;
}
