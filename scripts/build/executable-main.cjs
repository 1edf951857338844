// The main script of the single executable (scripts/executable.ts). Installs the package that the executable contains in a folder
// of its user, if it is not there yet, and runs it: Node 24 runs only one CommonJS script from within an executable.
'use strict';

/** @type {import('node:cluster').Cluster} */
// @ts-expect-error -- @types/node declares only the default export of this module, as ESM has it.
const cluster = require('node:cluster');
const { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { getAsset, getAssetKeys, getRawAsset } = require('node:sea');

const WRITABLE_BY_OTHERS = 0o022;
const MAIN = 'dist/main.js';

/**
 * Returns the folder of all versions: below that of a service of systemd, `$XDG_DATA_HOME`, or `.local/share` of the home. No
 * folder for caches or temporary files: these are cleaned while the program runs, and it imports some of its files late.
 * @throws if there is none
 */
function findParent() {
  const [state = ''] = (process.env.STATE_DIRECTORY ?? '').split(':');
  if (path.isAbsolute(state)) return path.join(state, 'package');
  const data = process.env.XDG_DATA_HOME ?? '';
  if (path.isAbsolute(data)) return path.join(data, 'tidegate');
  const home = process.env.HOME ?? homedir();
  if (!path.isAbsolute(home) || home === '/') throw new Error('this user has no home');
  return path.join(home, '.local/share/tidegate');
}

/** @param {string} folder @throws if another user could replace its files, which are executed */
function requireOwn(folder) {
  const { uid, mode } = lstatSync(folder);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`${folder} belongs to another user`);
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new Error(`other users can write to ${folder}`);
}

/**
 * Creates the folder and its missing parents, one by one: `recursive` of Node 24.21 never returns where a folder appears missing
 * and cannot be created (below /proc). Another process may create them at the same time.
 * @param {string} folder
 */
function makeFolder(folder) {
  if (existsSync(folder)) return;
  if (folder !== path.dirname(folder)) makeFolder(path.dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

/** @param {string} file @param {Uint8Array} content */
function holds(file, content) {
  return existsSync(file) && readFileSync(file).equals(content);
}

/** @param {string} parent @returns the folder of the package, whose name is a hash of the content: versions do not share one */
function unpack(parent) {
  const folder = path.join(parent, getAsset('digest', 'utf8'));
  makeFolder(folder);
  requireOwn(parent);
  requireOwn(folder);
  for (const key of getAssetKeys()) {
    const content = new Uint8Array(getRawAsset(key));
    const file = path.join(folder, key);
    if (holds(file, content)) continue;
    makeFolder(path.dirname(file));
    // Renamed, because other processes may start at the same time. In another container, one may have the same id.
    const draft = `${file}.${crypto.randomUUID()}`;
    writeFileSync(draft, content);
    renameSync(draft, file);
  }
  return folder;
}

/**
 * Returns the folder of the primary of this worker, which names its script in the first argument. It is another version if the
 * executable was replaced since the primary started.
 * @param {string} parent
 */
function folderOfPrimary(parent) {
  const [, , script = ''] = process.argv;
  const folder = path.dirname(path.dirname(script));
  if (!cluster.isWorker || path.dirname(folder) !== parent || script !== path.join(folder, MAIN)) return undefined;
  requireOwn(parent);
  requireOwn(folder);
  return folder;
}

let folder;
try {
  const parent = findParent();
  folder = folderOfPrimary(parent) ?? unpack(parent);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    `tidegate: cannot unpack its files: ${reason}\nSet XDG_DATA_HOME to a folder that belongs to this user and to which no other user can write.\n`,
  );
  process.exit(2);
}

const script = path.join(folder, MAIN);
// A worker of node:cluster is started with the path of the script as its first argument.
if (process.argv[2] === script) process.argv.splice(2, 1);
process.argv[1] = script;
createRequire(script)(script);
