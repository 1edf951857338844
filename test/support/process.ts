/** Tidegate as a process of its own, as a user starts it. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the process has ended. */
  readonly ended: Promise<Ended>;
  /** Lines of standard output so far, parsed; those that are not JSON are left out. */
  readonly log: () => Record<string, unknown>[];
}

export interface ProcessOptions {
  readonly script?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly files?: number;
  readonly cwd?: string;
}

/** Starts `node SCRIPT ARGS…` in the project's folder, with no more files open than `files`; killed when the test ends. */
export function startProcess(
  args: readonly string[],
  { script = 'src/main.ts', env = {}, files, cwd = ROOT }: ProcessOptions = {},
): Running {
  const command = [process.execPath, script, ...args];
  const [program = '', ...rest] =
    files === undefined ? command : ['sh', '-c', `ulimit -n ${files}; exec "$0" "$@"`, ...command];
  const child = spawn(program, rest, {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    stdio: 'pipe',
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, log: () => stdout.split('\n').flatMap(parseLine) };
}

/** Runs it to its end. */
export function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return startProcess(args, { env }).ended;
}

function parseLine(line: string): Record<string, unknown>[] {
  return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
}
