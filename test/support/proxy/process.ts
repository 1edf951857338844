/** Starts Tidegate in its own process, as a user does: the built program. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../at-end.ts';
import { builtProgram } from '../programs/built-program.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface ProcessResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the process has ended. */
  readonly ended: Promise<ProcessResult>;
  /** Complete JSON lines of standard output so far, parsed. */
  readonly log: () => Record<string, unknown>[];
}

export interface ProcessOptions {
  /** The built program by default. */
  readonly script?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly files?: number;
  readonly cwd?: string;
  /** Runs `npm start -- ARGS…` instead, in a process group of its own. */
  readonly npm?: boolean;
}

/** Starts `node SCRIPT ARGS…` in the project's folder, with an open file limit of `files`; killed when the test ends. */
export function startProcess(
  args: readonly string[],
  { script, env = {}, files, cwd = ROOT, npm = false }: ProcessOptions = {},
): RunningProcess {
  const command = npm
    ? ['npm', 'start', '--silent', '--', ...args]
    : [process.execPath, script ?? builtProgram('main'), ...args];
  const [program = '', ...rest] =
    files === undefined ? command : ['sh', '-c', `ulimit -n ${files}; exec "$0" "$@"`, ...command];
  const child = spawn(program, rest, {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    stdio: 'pipe',
    detached: npm,
  });
  atEnd(() => {
    if (npm) signalGroup(child, 'SIGKILL');
    else child.kill('SIGKILL');
  });
  let stdout = '';
  let stderr = '';
  let unread = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    unread += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined); // it may exit before it has read everything
  const ended = new Promise<ProcessResult>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const parsed: Record<string, unknown>[] = [];
  const log = (): Record<string, unknown>[] => {
    const lines = unread.split('\n');
    unread = lines.pop() ?? '';
    for (const line of lines) parsed.push(...parseLine(line));
    return [...parsed];
  };
  return { child, ended, log };
}

/** Signals all processes of its group that still run, as a terminal or a service manager does. */
export function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) throw new Error('it was not started');
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Runs it to its end. @param input standard input */
export function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, input?: string): Promise<ProcessResult> {
  const { child, ended } = startProcess(args, { env });
  if (input !== undefined) child.stdin.end(input);
  return ended;
}

function parseLine(line: string): Record<string, unknown>[] {
  return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
}
