import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';

/**
 * Kills a process and removes its folder as soon as this process has exited for any reason: a shell waits for the end of a
 * pipe from here.
 */
export function killOnExit(pid: number, folder: string): ChildProcess {
  const script = 'trap "" HUP INT TERM; read -r _; kill -9 "$0"; rm -rf "$1"';
  const shell = spawn('/bin/sh', ['-c', script, String(pid), folder], { stdio: ['pipe', 'ignore', 'ignore'] });
  shell.unref();
  return shell;
}
