// What `npm pack` does before and after it: docs/package.md.
//
//   node scripts/package.ts before     builds dist/ with its types, and puts the manifest of the package in the place of ours
//   node scripts/package.ts after      puts ours back

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { published } from './build/published.ts';

const ROOT = join(import.meta.dirname, '..');
const MANIFEST = join(ROOT, 'package.json');
/** Ours, in the meantime. */
const KEPT = join(ROOT, 'package.json.kept');

function restore(): void {
  if (existsSync(KEPT)) renameSync(KEPT, MANIFEST);
}

function prepare(): void {
  const build = [join(ROOT, 'scripts/build.ts'), '--types'];
  // Of `npm pack --json`, standard output is the report.
  const { status } = spawnSync(process.execPath, build, { cwd: ROOT, stdio: ['ignore', process.stderr, 'inherit'] });
  if (status !== 0) process.exit(1);
  const manifest: unknown = JSON.parse(readFileSync(MANIFEST, 'utf8'));
  const text = `${JSON.stringify(published(manifest), null, 2)}\n`;
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
  default:
    console.error('usage: node scripts/package.ts before|after');
    process.exitCode = 2;
}
