import { readdirSync, readFileSync } from 'node:fs';

/**
 * Returns the CPU seconds, user and kernel, of the running threads of a process and its descendants. Reads
 * /proc/PID/task/TID/schedstat (nanoseconds, Documentation/scheduler/sched-stats.rst), because stat has only hundredths.
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

/** Returns the resident bytes of a process and its descendants. */
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

/** Returns an empty string for a process that has just exited. */
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
