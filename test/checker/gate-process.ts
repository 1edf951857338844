/** Tidegate in its own process, with its workers, which faults kill, stop and start again on the same ports. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '../../src/core/scalars.ts';
import { identifyProcess } from '../../src/process/cluster/process-identity.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';
import { builtProgram } from '../support/programs/built-program.ts';

export interface GateParts {
  readonly configFile: string;
  readonly ports: { readonly listen: number; readonly admin: number };
  readonly env: NodeJS.ProcessEnv;
  readonly workers: number;
  readonly onLine: (line: LogLine) => void;
  /** Called with its standard error if it ends although nothing has ended it. */
  readonly onUnexpectedEnd: (why: string) => void;
}

/** Longer than any start, reload or drain takes on a busy machine. */
const PATIENCE: Millis = 120_000;
/** An earlier process may still hold the port or the database. */
const STILL_IN_USE = /is in use|another process uses|still run|have not ended|EADDRINUSE/;

const running = new Set<GateProcess>();
process.on('exit', () => {
  for (const gate of running) for (const pid of gate.pids) signal(pid, 'SIGKILL');
});
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1));

/** A start that ended with a message. */
export class StartRefused extends Error {}

export class GateProcess {
  readonly url: string;
  readonly adminUrl: string;
  readonly #parts: GateParts;
  #child: ChildProcess | undefined;
  #isEndExpected = false;
  #hasListened = false;
  /** Workers that have served: their pids and what distinguishes them from later processes. */
  readonly #workers = new Map<number, string>();
  #serving = 0;
  #reloads = 0;
  /** How often it has been started. */
  starts = 0;
  #stderr = '';

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.url = `http://127.0.0.1:${parts.ports.listen}`;
    this.adminUrl = `http://127.0.0.1:${parts.ports.admin}`;
  }

  /** The primary, or the only process. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get workerPids(): readonly number[] {
    for (const [pid, identity] of this.#workers) if (identifyProcess(pid) !== identity) this.#workers.delete(pid);
    return [...this.#workers.keys()];
  }

  get pids(): readonly number[] {
    return [...(this.#hasEnded ? [] : [this.pid]), ...this.workerPids];
  }

  configure(yaml: string): void {
    writeFileSync(this.#parts.configFile, yaml);
  }

  /** Resolves when it serves. Repeats the start while an earlier process is in its way. @throws StartRefused */
  async start(): Promise<void> {
    const until = performance.now() + PATIENCE;
    for (;;) {
      try {
        return await this.#startOnce();
      } catch (error) {
        const isInTheWay = error instanceof StartRefused && STILL_IN_USE.test(error.message);
        if (!isInTheWay || performance.now() > until) throw error;
        await sleep(100);
      }
    }
  }

  /** Sends SIGKILL to the primary, or to all its processes. Resolves when they have exited. */
  async kill(which: 'primary' | 'all'): Promise<void> {
    this.#isEndExpected = true;
    const pids = which === 'all' ? this.pids : [this.pid];
    for (const pid of pids) signal(pid, 'SIGKILL');
    await until(() => this.#hasEnded && (which === 'primary' || this.workerPids.length === 0), 'the end after SIGKILL');
  }

  /** Sends SIGTERM. Resolves to its exit code, once its workers have ended too: they may outlive a primary that is slow. */
  async drain(): Promise<number | NodeJS.Signals | null> {
    this.#isEndExpected = true;
    const child = this.#child;
    child?.kill('SIGTERM');
    await until(() => this.#hasEnded && this.workerPids.length === 0, 'the end after SIGTERM');
    return child?.exitCode ?? child?.signalCode ?? null;
  }

  /** Sends SIGHUP. Resolves when the new configuration is in effect. */
  async reload(yaml: string): Promise<void> {
    const before = this.#reloads;
    this.configure(yaml);
    this.#child?.kill('SIGHUP');
    await until(() => this.#reloads > before, 'a reload');
  }

  /** Resolves when as many workers serve as are configured. */
  async allServing(): Promise<void> {
    if (this.#parts.workers > 1) await until(() => this.workerPids.length >= this.#parts.workers, 'all workers');
  }

  async #startOnce(): Promise<void> {
    const { configFile, env } = this.#parts;
    const args = [builtProgram('main'), 'serve', '--config', configFile];
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.starts += 1;
    running.add(this);
    this.#isEndExpected = false;
    this.#hasListened = false;
    this.#serving = 0;
    this.#stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()));
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#onLine(line);
    });
    child.on('exit', (code, by) => {
      const why = `it ended with ${code ?? by}: ${this.#stderr.trim()}`;
      if (this.#hasListened && !this.#isEndExpected) this.#parts.onUnexpectedEnd(why);
    });
    const { workers } = this.#parts;
    const isServing = (): boolean => this.#hasListened && (workers === 1 || this.#serving >= workers);
    await until(() => isServing() || this.#hasEnded, 'a start');
    if (!this.#hasEnded) return;
    await sleep(50); // for the rest of its standard error
    throw new StartRefused(this.#stderr.trim());
  }

  get #hasEnded(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #onLine(text: string): void {
    const line = parse(text);
    if (line === undefined) return;
    if (line['msg'] === 'listening') this.#hasListened = true;
    if (line['msg'] === 'configuration reloaded') this.#reloads += 1;
    if (line['msg'] === 'worker is serving') {
      const pid = Number(line['pid']);
      this.#workers.set(pid, identifyProcess(pid) ?? '');
      this.#serving += 1;
    }
    this.#parts.onLine(line);
  }
}

/** A killed process may leave a part of a line, to which the next one is appended. */
function parse(text: string): LogLine | undefined {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** @throws Error that names what has not come, after two minutes */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what} has taken more than ${PATIENCE / 1000} s`);
    await sleep(10);
  }
}
