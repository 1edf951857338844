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
  /** Whole lines of standard output so far, parsed; those that are not JSON are left out. */
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
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined); // it may end before it has read all
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, log: () => stdout.split('\n').slice(0, -1).flatMap(parseLine) };
}

/** Runs it to its end. @param input what it can read */
export function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, input?: string): Promise<Ended> {
  const { child, ended } = startProcess(args, { env });
  if (input !== undefined) child.stdin.end(input);
  return ended;
}

function parseLine(line: string): Record<string, unknown>[] {
  return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
}
