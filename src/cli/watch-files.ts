import type { FSWatcher } from 'node:fs';
import { statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Millis } from '../core/scalars.ts';

export interface FileWatch {
  /** To be called after the files were read: the list of files may have changed. */
  refresh(): void;
  close(): void;
}

/** One write often raises several events, and several files are written one after another. */
const DEBOUNCE: Millis = 100;
/** Limits the delay if events never stop. */
const MAX_DEBOUNCE: Millis = 1000;
/** Interval of the check where no events arrive: on NFS, or after the folder itself was replaced. */
const POLL_INTERVAL: Millis = 5000;

/** Standard input and descriptors that a shell has opened can be read only once. */
const READ_ONCE = /^\/dev\/(?:stdin|fd\/\d+)$/;

/**
 * Watches files for changes. Watches their folders instead of the files, because editors replace a file, and Kubernetes swaps
 * a mounted file through a link beside it.
 * @param files the current list; called again after each change
 * @param onChange reads all files again
 */
export function watchFiles(files: () => Iterable<string>, onChange: () => Promise<unknown>): FileWatch {
  const watchers = new Map<string, FSWatcher>();
  let versions = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  let firstEventAt: Millis | undefined;

  const refresh = (): void => {
    const paths = [...files()].filter((path) => !READ_ONCE.test(path));
    // A known file keeps its version: it may have changed since it was read.
    versions = new Map(paths.map((path) => [path, versions.get(path) ?? fileVersion(path)]));
    const folders = new Set(paths.map((path) => dirname(path)));
    for (const [folder, watcher] of watchers) if (!folders.has(folder)) unwatchFolder(folder, watcher);
    for (const folder of folders) if (!watchers.has(folder)) watchFolder(folder);
  };

  const unwatchFolder = (folder: string, watcher: FSWatcher): void => {
    watcher.close();
    watchers.delete(folder);
  };

  const watchFolder = (folder: string): void => {
    try {
      const watcher = watch(folder, { persistent: false }, scheduleCheck);
      watcher.on('error', () => unwatchFolder(folder, watcher));
      watchers.set(folder, watcher);
    } catch {
      // The periodic check covers this folder.
    }
  };

  const checkFiles = (): void => {
    firstEventAt = undefined;
    const before = versions;
    versions = new Map([...before.keys()].map((path) => [path, fileVersion(path)]));
    if ([...versions].some(([path, at]) => before.get(path) !== at)) void onChange().then(refresh);
  };

  const scheduleCheck = (): void => {
    const now = performance.now();
    firstEventAt ??= now;
    clearTimeout(timer);
    timer = setTimeout(checkFiles, Math.min(DEBOUNCE, Math.max(0, firstEventAt + MAX_DEBOUNCE - now))).unref();
  };

  refresh();
  const interval = setInterval(checkFiles, POLL_INTERVAL).unref();
  return {
    refresh,
    close: () => {
      clearTimeout(timer);
      clearInterval(interval);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

/** Changes when the file is replaced or written. */
function fileVersion(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${path} ${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return `${path} none`;
  }
}
