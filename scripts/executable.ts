// Builds a single executable, which needs no Node: Node with the package in it; see docs/package.md.
//
//   npm run build:executable -- --out FILE [--package FOLDER]
//
//   --package FOLDER   a built package with dist/ and config/; the checkout by default, after `npm run build`

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
/** What Node looks for in its own file: https://nodejs.org/api/single-executable-applications.html */
const RESOURCE = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const CONTENT = ['package.json', 'LICENSE', 'dist', 'config'];

/** The Node that the lockfile names, where there is a package of it, and else this one, which has to be 24.9 or later. */
const LOCKED_NODE = join(ROOT, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
const NODE = existsSync(LOCKED_NODE) ? LOCKED_NODE : process.execPath;

const { values } = parseArgs({ options: { out: { type: 'string' }, package: { type: 'string', default: ROOT } } });
if (values.out === undefined) fail('usage: npm run build:executable -- --out FILE [--package FOLDER]', 2);
const out = resolve(values.out);
const place = mkdtempSync(join(tmpdir(), 'tidegate-executable-'));
process.once('exit', () => rmSync(place, { recursive: true, force: true }));

const assets = { ...findAssets(resolve(values.package)), ...findLicenceOfNode() };
const hash = createHash('sha256');
for (const [key, path] of Object.entries(assets)) hash.update(`${key}\0`).update(readFileSync(path)).update('\0');
const digest = join(place, 'digest');
writeFileSync(digest, hash.digest('hex').slice(0, 32));

const config = join(place, 'config.json');
const blob = join(place, 'blob');
const main = join(ROOT, 'scripts/build/executable-main.cjs');
writeFileSync(
  config,
  JSON.stringify({ main, output: blob, disableExperimentalSEAWarning: true, assets: { ...assets, digest } }),
);
run(NODE, ['--experimental-sea-config', config]);
copyFileSync(NODE, out);
chmodSync(out, 0o755);
const postject = createRequire(import.meta.url).resolve('postject/dist/cli.js');
run(process.execPath, [postject, out, RESOURCE, blob, '--sentinel-fuse', FUSE]);
console.log(`${out}: ${Object.keys(assets).length} files, and ${NODE}`);

/** Returns the files by their path within the package. */
function findAssets(folder: string): Readonly<Record<string, string>> {
  const missing = CONTENT.filter((name) => name !== 'LICENSE' && !existsSync(join(folder, name)));
  if (missing.length > 0) fail(`${folder} has no ${missing.join(', no ')}. Run \`npm run build\` first.`, 1);
  const paths = CONTENT.flatMap((name) => filesBelow(join(folder, name)))
    .filter((path) => !path.endsWith('.d.ts'))
    .toSorted();
  return Object.fromEntries(paths.map((path) => [relative(folder, path), path]));
}

/** Archives of Node have their licence, which has to accompany each copy, two folders above the program. */
function findLicenceOfNode(): Readonly<Record<string, string>> {
  const file = join(NODE, '../../LICENSE');
  if (existsSync(file)) return { 'NODE_LICENSE.txt': file };
  console.error(`${file} does not exist: before you give the executable to others, add the licence of Node.`);
  return {};
}

function filesBelow(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function run(program: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) fail(`${program} ${args.join(' ')}: ${error?.message ?? ''}\n${stdout}${stderr}`, 1);
}

function fail(message: string, status: number): never {
  console.error(message);
  process.exit(status);
}
