// The main script of the single executable (scripts/executable.ts). Writes the package that the executable contains into a cache
// folder, if it is not there yet, and runs it: Node 24 runs only one CommonJS script from within an executable.
'use strict';

const { existsSync, lstatSync, mkdirSync, renameSync, statSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { homedir, tmpdir } = require('node:os');
const path = require('node:path');
const { getAsset, getAssetKeys, getRawAsset } = require('node:sea');

const WRITABLE_BY_OTHERS = 0o022;

/** `$XDG_CACHE_HOME`, else `.cache` of the home, else a folder of the temporary one. */
function cacheFolder() {
  const configured = process.env.XDG_CACHE_HOME ?? '';
  if (path.isAbsolute(configured)) return path.join(configured, 'tidegate');
  const home = process.env.HOME ?? homedir();
  return home === '' || home === '/'
    ? path.join(tmpdir(), `tidegate-package-${process.getuid?.()}`)
    : path.join(home, '.cache/tidegate');
}

/** @param {string} folder @throws if another user could replace its files, which are executed */
function requireOwn(folder) {
  const { uid, mode } = lstatSync(folder);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error('it belongs to another user');
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new Error('other users can write to it');
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

/** @param {string} file @param {number} size */
function hasSize(file, size) {
  return statSync(file, { throwIfNoEntry: false })?.size === size;
}

/** Returns the folder of the package. Its name is a hash of the content, so that versions do not share one. */
function unpack() {
  const parent = cacheFolder();
  const folder = path.join(parent, getAsset('digest', 'utf8'));
  try {
    makeFolder(folder);
    requireOwn(parent);
    requireOwn(folder);
    for (const key of getAssetKeys()) {
      const content = new Uint8Array(getRawAsset(key));
      const file = path.join(folder, key);
      if (hasSize(file, content.byteLength)) continue;
      makeFolder(path.dirname(file));
      // Renamed, because other processes may start at the same time.
      const draft = `${file}.${process.pid}`;
      writeFileSync(draft, content);
      renameSync(draft, file);
    }
    return folder;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      `tidegate: cannot unpack its files into ${folder}: ${reason}\nSet XDG_CACHE_HOME to a folder of this user that may be written to.\n`,
    );
    process.exit(2);
  }
}

const script = path.join(unpack(), 'dist/main.js');
// A worker of node:cluster is started with the path of the script as its first argument.
if (process.argv[2] === script) process.argv.splice(2, 1);
process.argv[1] = script;
createRequire(script)(script);
