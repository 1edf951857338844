import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const START_TIMEOUT = 10_000;
const POLL_INTERVAL = 20;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  /** Stops it at once, with its workers. */
  readonly stopSignal: NodeJS.Signals;
  /** File for its output, because reading it here would cost as much CPU time as writing it. */
  readonly output?: string;
}

const running = new Set<Program>();
process.on('exit', () => {
  for (const program of running) program.kill();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** A program that runs at most as long as the benchmark. */
export class Program {
  readonly #command: Command;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  /** The beginning of its output; the rest is read and dropped. */
  #printed = '';
  #hasEnded = false;

  constructor(command: Command) {
    this.#command = command;
    const { PATH } = process.env;
    const output = command.output === undefined ? 'pipe' : openSync(command.output, 'w');
    const stdio = ['ignore', output, output] as const;
    this.#child = spawn(command.command, command.args, { cwd: ROOT, env: { PATH }, stdio: [...stdio] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        if (this.#printed.length < 10_000) this.#printed += chunk.toString();
      });
    }
    running.add(this);
    this.#ended = new Promise((resolve) => {
      const end = (error?: Error): void => {
        if (error !== undefined) this.#printed += error.message;
        this.#hasEnded = true;
        running.delete(this);
        resolve();
      };
      this.#child.once('error', end);
      this.#child.once('close', () => end());
    });
  }

  /** Resolves to the first group of the pattern in its output. Rejects if it exits before, or after a timeout. */
  async printed(pattern: RegExp): Promise<string> {
    return this.#until(() => Promise.resolve(pattern.exec(this.#readPrinted())?.[1]));
  }

  /** Resolves when it accepts connections. Rejects if it exits before, or after a timeout. */
  async listening(port: number): Promise<void> {
    await this.#until(() => takesConnections(port));
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(): void {
    this.#child.kill(this.#command.stopSignal);
  }

  async stop(): Promise<void> {
    this.kill();
    await this.#ended;
  }

  #readPrinted(): string {
    const { output } = this.#command;
    return output === undefined ? this.#printed : readFileSync(output, 'utf8').slice(0, 10_000);
  }

  async #until<T>(look: () => Promise<T | undefined>): Promise<T> {
    const until = performance.now() + START_TIMEOUT;
    for (;;) {
      const seen = await look();
      if (seen !== undefined) return seen;
      if (this.#hasEnded || performance.now() > until) {
        const what = this.#hasEnded ? 'ended' : 'is not ready';
        throw new Error(`${this.#command.command} ${what}: ${this.#readPrinted().trim() || 'it printed nothing'}`);
      }
      await sleep(POLL_INTERVAL);
    }
  }
}

async function takesConnections(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(undefined));
  });
}
