import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';

/**
 * Has a process killed, and its folder removed, as soon as this one has ended, however that came about: a shell waits for
 * the end of a pipe from here. Killed itself, it does nothing.
 */
export function endWithThis(pid: number, folder: string): ChildProcess {
  const script = 'trap "" HUP INT TERM; read -r _; kill -9 "$0"; rm -rf "$1"';
  const shell = spawn('/bin/sh', ['-c', script, String(pid), folder], { stdio: ['pipe', 'ignore', 'ignore'] });
  shell.unref();
  return shell;
}
