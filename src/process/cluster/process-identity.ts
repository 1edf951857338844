import { readFileSync } from 'node:fs';

/** The fields of /proc/PID/stat after the name of the program, which may contain spaces: proc_pid_stat(5). */
const STATE = 0;
const START_TIME = 19;

/**
 * Distinguishes a process from a later one with the same pid, also after the machine has restarted.
 * @returns undefined if no such process runs; '' if it runs and the system has no /proc
 */
export function identifyProcess(pid: number): string | undefined {
  const boot = read('/proc/sys/kernel/random/boot_id');
  if (boot === undefined) return isRunning(pid) ? '' : undefined;
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields?.[STATE];
  if (fields === undefined || state === 'Z' || state === 'X') return undefined; // it has ended
  return `${boot.trim()} ${fields[START_TIME]}`;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
