/**
 * The compile cache of Node: what V8 has made of the program's files, kept from one start to the next (docs/start.md).
 * It is code that will be run, so that nobody else may have a hand in it.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { constants, enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installed } from '../installation.ts';

export interface CompileCache {
  /** Undefined: there is none. */
  readonly folder: string | undefined;
  /** Why the folder that `TIDEGATE_CACHE` names is not used. */
  readonly refused?: string;
}

const OFF = 'off';

/**
 * Modules that are loaded from now on come from the cache: in the folder that `TIDEGATE_CACHE` names, and nowhere else; or in
 * one that came with the program, or in the temporary folder. None where it is `off`, or where no folder will do. Node's own
 * NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE come before all that. Never throws.
 */
export function openCompileCache(env: NodeJS.ProcessEnv): CompileCache {
  const chosen = getCompileCacheDir();
  if (chosen !== undefined) return { folder: chosen };
  const named = env['TIDEGATE_CACHE'] || undefined;
  if (named === OFF) return { folder: undefined };
  if (named !== undefined) {
    const opened = open(resolve(named));
    return typeof opened === 'string' ? { folder: opened } : { folder: undefined, refused: opened.refused };
  }
  for (const folder of usual()) {
    const opened = open(folder);
    if (typeof opened === 'string') return { folder: opened };
  }
  return { folder: undefined };
}

/**
 * Writes what is not in the cache yet. Node does so when the process ends by itself, and a proxy is mostly ended by a signal.
 * Where it cannot be written, it is not.
 */
export function keepCompiled(): void {
  flushCompileCache();
}

function usual(): string[] {
  const ready = fileURLToPath(installed('cache'));
  const own = join(tmpdir(), `tidegate-${process.getuid?.() ?? 'cache'}`);
  return existsSync(ready) ? [ready, own] : [own];
}

/** The folder in use, or why it is not. */
function open(folder: string): string | { readonly refused: string } {
  const umask = process.umask(0o077); // the folder that Node makes within is nobody else's either
  try {
    makeFolder(folder);
    const real = realpathSync(folder); // no link is followed that somebody could turn meanwhile
    const stranger = findStranger(real);
    if (stranger !== undefined) return { refused: `${stranger} can be changed by others` };
    const { status, message, directory } = enableCompileCache(real);
    if (status !== constants.compileCacheStatus.ENABLED) return { refused: message ?? 'Node does without' };
    return directory ?? real;
  } catch (error) {
    return { refused: error instanceof Error ? error.message : String(error) };
  } finally {
    process.umask(umask);
  }
}

/**
 * The folder, and those above it that are not there. One after the other: `recursive` of Node 24.21 goes on for ever where a
 * folder seems not to be there and cannot be made (below /proc).
 */
function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let path = folder; !existsSync(path) && path !== dirname(path); path = dirname(path)) missing.unshift(path);
  for (const path of missing) mkdirSync(path);
}

const BY_OTHERS = 0o022;
const STICKY = 0o1000;
const ROOT = 0;

/** What of the folder, the folders in it and those above it somebody else could put other files into; undefined when nothing. */
function findStranger(folder: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined; // Windows: the temporary folder is the user's own
  const within = [folder, ...readdirSync(folder).map((name) => join(folder, name))];
  const open = within.find((path) => !isOurs(path, uid, 'alone'));
  if (open !== undefined) return open;
  for (let path = dirname(folder), below = folder; path !== below; below = path, path = dirname(path)) {
    if (!isOurs(path, uid, 'shared')) return path;
  }
  return undefined;
}

/** In a folder that is sticky, as /tmp is, others cannot put theirs in the place of ours. */
function isOurs(path: string, uid: number, use: 'alone' | 'shared'): boolean {
  const { mode, uid: owner } = lstatSync(path);
  if (owner !== uid && owner !== ROOT) return false;
  return (mode & BY_OTHERS) === 0 || (use === 'shared' && (mode & STICKY) !== 0);
}
