/** Tidegate as a process of its own that can be asked what it holds on to. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Held, Question } from './probe.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export type LogLine = Readonly<Record<string, unknown>>;

export class Probed {
  readonly url: string;
  readonly adminUrl: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;
  #answered: Promise<unknown> = Promise.resolve();

  constructor(child: ChildProcess, ended: Promise<string>, url: string, adminUrl: string) {
    this.#child = child;
    this.#ended = ended;
    this.url = url;
    this.adminUrl = adminUrl;
  }

  /** Resolves when it has ended, however that came about, with what it wrote to standard error. */
  get ended(): Promise<string> {
    return this.#ended;
  }

  /** Undefined while it runs. */
  get exitCode(): number | string | undefined {
    return this.#child.exitCode ?? this.#child.signalCode ?? undefined;
  }

  async held(): Promise<Held> {
    return (await this.#ask({ ask: 'held' })) as Held;
  }

  /** Bytes of what was not collected while it was young, in all. */
  async aged(): Promise<number> {
    return (await this.#ask({ ask: 'aged' })) as number;
  }

  /** From now on names are 127.0.0.1; or, with a code, no name is found. */
  async lookups(error?: string): Promise<void> {
    await this.#ask(error === undefined ? { ask: 'lookups' } : { ask: 'lookups', error });
  }

  /** All series of /metrics, by name and labels as they are written there. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const exposition = await read(`${this.adminUrl}/metrics`);
    const series = exposition.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      series.map((line) => {
        const space = line.lastIndexOf(' ');
        return [line.slice(0, space), Number(line.slice(space + 1))] as const;
      }),
    );
  }

  /** At once, and without waiting for it. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Ends it as an orchestrator does. Resolves when it has ended. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#child.kill(signal);
    await this.#ended;
  }

  /** One question at a time: answers do not say what they answer. */
  async #ask(question: Question): Promise<unknown> {
    const before = this.#answered;
    const answer = before.then(async () => {
      const message = once(this.#child, 'message', { signal: AbortSignal.timeout(20_000) });
      this.#child.send(question);
      const [answered] = (await message) as [unknown];
      return answered;
    });
    this.#answered = answer.catch(() => undefined);
    return answer;
  }
}

/**
 * Starts one from YAML; `admin` and a short `drain` are given, and `listen` unless it says that.
 * @param onLine called with each line of its log
 */
export async function startProbed(yaml: string, onLine: (line: LogLine) => void): Promise<Probed> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  const config = join(folder, 'tidegate.yaml');
  const listen = /^listen:/m.test(yaml) ? '' : 'listen: 127.0.0.1:0\n';
  writeFileSync(config, `${listen}admin: 127.0.0.1:0\ndrain: {delay: 0, timeout: 1s}\n${yaml}`);
  const args = ['--import', './test/support/probe.ts', 'src/main.ts', 'serve', '--config', config];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let complaints = '';
  child.stderr?.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  const ended = once(child, 'close').then(() => {
    rmSync(folder, { recursive: true, force: true });
    return complaints;
  });
  if (child.stdout === null) throw new Error('no standard output');
  const output = child.stdout.setEncoding('utf8');
  const listening = new Promise<LogLine>((resolve, reject) => {
    let rest = '';
    output.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? ''; // one that is killed may leave half a line
      for (const json of lines) {
        const line = JSON.parse(json) as LogLine;
        if (line['msg'] === 'listening') resolve(line);
        onLine(line);
      }
    });
    void ended.then(() => reject(new Error(`tidegate ended: ${complaints}`)));
  });
  const { url, admin } = await listening;
  return new Probed(child, ended, String(url), String(admin));
}

/** On a connection of its own, which ends with it: what is kept open would count among the handles. */
function read(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (answer) => void text(answer).then(resolve, reject)).on('error', reject);
  });
}
