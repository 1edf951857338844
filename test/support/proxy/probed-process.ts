/** Tidegate in its own process, with a probe that reports its memory and handles. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { HeldResources, ProbeCommand } from './memory-probe.ts';
import { builtProgram } from '../programs/built-program.ts';
import { eventually, NO_SHEDDING } from './tidegate.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export type LogLine = Readonly<Record<string, unknown>>;

export class ProbedProcess {
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

  /** Resolves to its standard error when it has exited for any reason. */
  get ended(): Promise<string> {
    return this.#ended;
  }

  /** Undefined while it runs. */
  get exitCode(): number | string | undefined {
    return this.#child.exitCode ?? this.#child.signalCode ?? undefined;
  }

  async heldResources(): Promise<HeldResources> {
    return (await this.#send({ command: 'held' })) as HeldResources;
  }

  /** Total bytes promoted from the young generation. */
  async promotedBytes(): Promise<number> {
    return (await this.#send({ command: 'aged' })) as number;
  }

  /** Makes every name resolve to 127.0.0.1 or, with an error code, fail. */
  async setDnsFailure(error?: string): Promise<void> {
    await this.#send(error === undefined ? { command: 'lookups' } : { command: 'lookups', error });
  }

  /** Returns all series of /metrics by name and labels, as written there. */
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

  /** Kills it at once, without waiting. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Stops it as an orchestrator does. Resolves when it has exited. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#child.kill(signal);
    await this.#ended;
  }

  /** One command at a time, because replies have no id. */
  async #send(question: ProbeCommand): Promise<unknown> {
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
 * Starts one from YAML; adds `admin`, a short `drain`, and `listen` and `limits` unless set.
 * @param onLine called with each line of its log
 */
export async function startProbedProcess(yaml: string, onLine: (line: LogLine) => void): Promise<ProbedProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  const config = join(folder, 'tidegate.yaml');
  const listen = /^listen:/m.test(yaml) ? '' : 'listen: 127.0.0.1:0\n';
  const limits = /^limits:/m.test(yaml) ? '' : `${NO_SHEDDING}\n`;
  writeFileSync(config, `${listen}admin: 127.0.0.1:0\ndrain: {delay: 0, timeout: 1s}\n${limits}${yaml}`);
  const args = ['--import', './test/support/proxy/memory-probe.ts', builtProgram('main'), 'serve', '--config', config];
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
      rest = lines.pop() ?? ''; // a killed process may leave a partial line
      for (const json of lines) {
        const line = JSON.parse(json) as LogLine;
        if (line['msg'] === 'listening') resolve(line);
        onLine(line);
      }
    });
    void ended.then(() => reject(new Error(`tidegate ended: ${complaints}`)));
  });
  const { url, admin } = await listening;
  const gate = new ProbedProcess(child, ended, String(url), String(admin));
  // The connections that check the upstreams at the start are none of the resources that it holds when idle.
  await eventually(
    () => gate.heldResources(),
    ({ handles }) => CONNECTIONS.every((kind) => handles[kind] === undefined),
  );
  return gate;
}

/** The kinds of active resources of a connection to an upstream, from the look-up of its name on. */
const CONNECTIONS = ['GetAddrInfoReqWrap', 'ConnectWrap', 'TCPSocketWrap', 'TLSWrap'] as const;

/** Requests a URL without keep-alive, because an open connection would count as a handle. */
function read(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (answer) => void text(answer).then(resolve, reject)).on('error', reject);
  });
}
