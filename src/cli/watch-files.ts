import type { FSWatcher } from 'node:fs';
import { statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Millis } from '../core/exchange/attempt-outcome.ts';

export interface FileWatch {
  /** They have just been read: there may be others among them. */
  follow(): void;
  close(): void;
}

/** Many ways of writing a file raise several events, and of several files each is written in its turn. */
const UNREST: Millis = 100;
/** A folder that never rests is looked at all the same. */
const LONGEST_UNREST: Millis = 1000;
/** Where nothing is told (NFS, a folder that was itself replaced), it is looked so often. */
const LOOK_EVERY: Millis = 5000;

/** Standard input, and what a shell has opened: they are read once. */
const ONCE = /^\/dev\/(?:stdin|fd\/\d+)$/;

/**
 * Calls when files have come to hold something else. Their folders are watched, not they: an editor puts another file in
 * their place, and what Kubernetes mounts is swapped by a link beside it.
 * @param files asked for anew after each change
 * @param onChange reads them, all that there are by then
 */
export function watchFiles(files: () => Iterable<string>, onChange: () => Promise<unknown>): FileWatch {
  const watchers = new Map<string, FSWatcher>();
  let seen = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  let restlessSince: Millis | undefined;

  const follow = (): void => {
    const paths = [...files()].filter((path) => !ONCE.test(path));
    // What was read before keeps its mark: it may have changed since.
    seen = new Map(paths.map((path) => [path, seen.get(path) ?? mark(path)]));
    const folders = new Set(paths.map((path) => dirname(path)));
    for (const [folder, watcher] of watchers) if (!folders.has(folder)) leave(folder, watcher);
    for (const folder of folders) if (!watchers.has(folder)) enter(folder);
  };

  const leave = (folder: string, watcher: FSWatcher): void => {
    watcher.close();
    watchers.delete(folder);
  };

  const enter = (folder: string): void => {
    try {
      const watcher = watch(folder, { persistent: false }, soon);
      watcher.on('error', () => leave(folder, watcher));
      watchers.set(folder, watcher);
    } catch {
      // It is looked at now and then all the same.
    }
  };

  const look = (): void => {
    restlessSince = undefined;
    const before = seen;
    seen = new Map([...before.keys()].map((path) => [path, mark(path)]));
    if ([...seen].some(([path, at]) => before.get(path) !== at)) void onChange().then(follow);
  };

  const soon = (): void => {
    const now = performance.now();
    restlessSince ??= now;
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(UNREST, Math.max(0, restlessSince + LONGEST_UNREST - now))).unref();
  };

  follow();
  const interval = setInterval(look, LOOK_EVERY).unref();
  return {
    follow,
    close: () => {
      clearTimeout(timer);
      clearInterval(interval);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

/** Another file, or one that was written since. */
function mark(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${path} ${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return `${path} none`;
  }
}
