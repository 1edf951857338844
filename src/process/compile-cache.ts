/**
 * The compile cache of Node: V8's compiled code of the program, kept from one start to the next (docs/start.md). The code is
 * executed, so no other user may be able to write to it.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { constants, enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installedFile } from '../installation.ts';

export interface CompileCache {
  /** Undefined: no cache is used. */
  readonly folder: string | undefined;
  /** Why the folder in `TIDEGATE_CACHE` is not used. */
  readonly refused?: string;
}

const OFF = 'off';

/**
 * Loads modules from the cache from now on. Uses only the folder in `TIDEGATE_CACHE`, if it is set; else one installed with
 * the program, or one in the temporary folder. No cache if it is `off`, or if no folder is usable. NODE_COMPILE_CACHE
 * and NODE_DISABLE_COMPILE_CACHE of Node take precedence. Never throws.
 */
export function openCompileCache(env: NodeJS.ProcessEnv): CompileCache {
  const nodeFolder = getCompileCacheDir();
  if (nodeFolder !== undefined) return { folder: nodeFolder };
  const configuredFolder = env['TIDEGATE_CACHE'] || undefined;
  if (configuredFolder === OFF) return { folder: undefined };
  if (configuredFolder !== undefined) {
    const opened = enableIn(resolve(configuredFolder));
    return typeof opened === 'string' ? { folder: opened } : { folder: undefined, refused: opened.refused };
  }
  for (const folder of defaultFolders()) {
    const opened = enableIn(folder);
    if (typeof opened === 'string') return { folder: opened };
  }
  return { folder: undefined };
}

/**
 * Writes new code to the cache. Node does that only when the process exits by itself, and a proxy usually ends by a signal.
 * Ignores write errors.
 */
export function saveCompileCache(): void {
  flushCompileCache();
}

function defaultFolders(): string[] {
  const bundled = fileURLToPath(installedFile('cache'));
  const temporary = join(tmpdir(), `tidegate-${process.getuid?.() ?? 'cache'}`);
  return existsSync(bundled) ? [bundled, temporary] : [temporary];
}

/** Returns the folder in use, or why it is not used. */
function enableIn(folder: string): string | { readonly refused: string } {
  const umask = process.umask(0o077); // Node creates a folder within: no access for others
  try {
    makeFolder(folder);
    const real = realpathSync(folder); // a link could be changed between the check and the use
    const unsafePath = findUnsafePath(real);
    if (unsafePath !== undefined) return { refused: `${unsafePath} is writable by other users` };
    const { status, message, directory } = enableCompileCache(real);
    if (status !== constants.compileCacheStatus.ENABLED) return { refused: message ?? 'Node could not enable it' };
    return directory ?? real;
  } catch (error) {
    return { refused: error instanceof Error ? error.message : String(error) };
  } finally {
    process.umask(umask);
  }
}

/**
 * Creates the folder and its missing parents, one by one: `recursive` of Node 24.21 never returns where a folder appears
 * missing and cannot be created (below /proc).
 */
function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let path = folder; !existsSync(path) && path !== dirname(path); path = dirname(path)) missing.unshift(path);
  for (const path of missing) mkdirSync(path);
}

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const ROOT = 0;

/** The first of the folder, its entries and its parents that another user could write to; undefined when there is none. */
function findUnsafePath(folder: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined; // Windows: the temporary folder is the user's own
  const within = [folder, ...readdirSync(folder).map((name) => join(folder, name))];
  const open = within.find((path) => !isTrusted(path, uid, 'alone'));
  if (open !== undefined) return open;
  for (let path = dirname(folder), below = folder; path !== below; below = path, path = dirname(path)) {
    if (!isTrusted(path, uid, 'shared')) return path;
  }
  return undefined;
}

/** In a sticky folder such as /tmp, other users cannot replace our files. */
function isTrusted(path: string, uid: number, use: 'alone' | 'shared'): boolean {
  const { mode, uid: owner } = lstatSync(path);
  if (owner !== uid && owner !== ROOT) return false;
  return (mode & WRITABLE_BY_OTHERS) === 0 || (use === 'shared' && (mode & STICKY) !== 0);
}
