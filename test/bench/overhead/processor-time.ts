import { readdirSync, readFileSync } from 'node:fs';

/**
 * Seconds of processor time that a process and all below it have had, user and kernel, of threads that still run. From
 * /proc/PID/task/TID/schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst): stat has hundredths only.
 */
export function processorTime(pid: number): number {
  let nanoseconds = 0;
  for (const each of [pid, ...descendantsOf(pid)]) {
    for (const thread of list(`/proc/${each}/task`)) {
      nanoseconds += Number(read(`/proc/${each}/task/${thread}/schedstat`).split(' ')[0] ?? 0);
    }
  }
  return nanoseconds / 1e9;
}

/** Bytes that it holds in memory, and all below it. */
export function residentBytes(pid: number): number {
  const page = 4096;
  return [pid, ...descendantsOf(pid)].reduce(
    (sum, each) => sum + page * Number(read(`/proc/${each}/statm`).split(' ')[1] ?? 0),
    0,
  );
}

function descendantsOf(pid: number): number[] {
  const children = list(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Empty when it has just ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
