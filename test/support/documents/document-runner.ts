/** Runs the snippets of a document in order, in a folder like a clone, with its servers running. */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { builtProgram } from '../programs/built-program.ts';
import type { Snippet } from './snippets.ts';
import { writeStandInForNpm } from './stand-in-for-npm.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Entries that a clone does not contain, and the tests, which no command of a document reads. */
const NOT_COPIED = new Set(['.git', 'dist', 'node_modules', 'test']);
/** What commands read that do not run the sources. A copy of all takes a second of processor time. */
const READ = ['config', 'package.json'];

/** Addresses in documents. Each port is replaced by a free one, consistently within a document. */
const ADDRESS = /\b(127\.0\.0\.1|localhost|0\.0\.0\.0):(\d{4,5})\b/g;
const PROXY = 8080;
const ADMIN = 9901;
/** Another port in documents, replaced through TIDEGATE_LISTEN. */
const SECURE = 8443;

/** System paths in documents, moved into the folder. */
const PLACES = /(?<![\w.])\/(?:run\/secrets|var\/lib\/tidegate)\b/g;
/** The token in the environment of reporting commands. */
const REPORT_TOKEN = randomUUID();
const SECRETS = ['admin', 'tidegate', 'redis', 'stripe'];

const LONGEST = 60_000;

interface SnippetResult {
  readonly status: number | null;
  readonly output: string;
}

export class DocumentRunner {
  readonly #folder: string;
  readonly #ports = new Map<number, number>();
  /** Variables set by earlier snippets. */
  readonly #variables: string[] = [];
  #server: { readonly command: string; readonly child: ChildProcess } | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Opens a runner in a folder like a clone after `npm ci`.
   * @param underNpm whether `npm` is npm, which runs the sources: otherwise the built program stands in for both
   */
  static async open(
    snippets: readonly Snippet[],
    { underNpm }: { readonly underNpm: boolean },
  ): Promise<DocumentRunner> {
    const reader = new DocumentRunner(mkdtempSync(join(tmpdir(), 'tidegate-reader-')));
    // One process copies faster than cpSync.
    const copied = underNpm ? readdirSync(ROOT).filter((name) => !NOT_COPIED.has(name)) : READ;
    await promisify(execFile)('cp', ['-R', ...copied, reader.#folder], { cwd: ROOT });
    symlinkSync(join(ROOT, 'node_modules'), join(reader.#folder, 'node_modules'));
    reader.#write('bin/tidegate', `#!/bin/sh\nexec node '${builtProgram('main')}' "$@"`); // like an installed command
    chmodSync(join(reader.#folder, 'bin/tidegate'), 0o755);
    if (!underNpm) writeStandInForNpm(join(reader.#folder, 'bin'));
    const namedPorts = snippets.flatMap(({ text }) => [...text.matchAll(ADDRESS)].map(([, , port]) => Number(port)));
    for (const port of new Set([PROXY, ADMIN, ...namedPorts])) reader.#ports.set(port, await findFreePort());
    reader.#ports.set(SECURE, reader.#ports.get(PROXY) ?? 0);
    for (const name of SECRETS) reader.#write(`run/secrets/${name}`, randomUUID());
    mkdirSync(join(reader.#folder, 'var/lib/tidegate'), { recursive: true });
    return reader;
  }

  async close(): Promise<void> {
    await this.#stopServing();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** @throws an error with the actual output if it differs from what the document states */
  async follow({ text, marks }: Snippet): Promise<void> {
    for (const mark of marks) {
      if (mark.kind === 'after') await this.#runWell(mark.command);
      if (mark.kind === 'beside') await this.#serve(mark.command);
      if (mark.kind === 'as') return this.#write(mark.file, this.#here(text));
    }
    let script = text.replaceAll('npm ci && ', '');
    // node_modules links to the checkout, so an installation would remove the packages for all tests.
    if (/\bnpm (?:ci|i|install)\b/.test(script)) throw new Error(`what it installs, CI has to try:\n${script}`);
    for (const mark of marks) {
      if (mark.kind !== 'where') continue;
      const { output } = await this.#run(mark.command);
      if (output.trim() === '') throw new Error(`nothing stands for ${mark.word}: ${mark.command}`);
      script = script.replaceAll(mark.word, output.trim());
    }
    if (marks.some(({ kind }) => kind === 'serves')) return this.#serve(script);
    if (marks.some(({ kind }) => kind === 'goes on')) return this.#startServer(script);
    await this.#runWell(script, marks.find((mark) => mark.kind === 'ends with')?.status);
    // One that continues on the next line is not whole.
    this.#variables.push(...script.split('\n').filter((line) => /^[A-Z]\w*=.*[^\\]$/.test(line)));
  }

  #here(text: string): string {
    return text
      .replaceAll(ADDRESS, (_, host: string, port: string) => `${host}:${this.#ports.get(Number(port))}`)
      .replaceAll(PLACES, (place) => `${this.#folder}${place}`);
  }

  #write(file: string, text: string): void {
    const path = join(this.#folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text}\n`);
  }

  #spawn(script: string): ChildProcess {
    const env = {
      ...process.env,
      PATH: `${join(this.#folder, 'bin')}:${dirname(process.execPath)}:${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
      TIDEGATE_LISTEN: this.#here(`127.0.0.1:${PROXY}`),
      TIDEGATE_REPORT_TOKEN: REPORT_TOKEN,
      TIDEGATE_ADMIN: this.#here(`127.0.0.1:${ADMIN}`),
      npm_config_loglevel: 'error',
      npm_config_update_notifier: 'false',
    };
    const whole = this.#here([...this.#variables, script].join('\n'));
    // Its own process group, so that npm, its shell and the program end together.
    return spawn('bash', ['--norc', '-euo', 'pipefail', '-c', whole], { cwd: this.#folder, env, detached: true });
  }

  async #runWell(script: string, wanted = 0): Promise<void> {
    const { status, output } = await this.#run(script);
    if (status !== wanted) throw new Error(`ended with ${status}, not ${wanted}:\n${script}\n\n${output}`);
  }

  async #run(script: string): Promise<SnippetResult> {
    const child = this.#spawn(script);
    const timer = setTimeout(() => kill(child, 'SIGKILL'), LONGEST);
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
    clearTimeout(timer);
    return { status, output };
  }

  /** Replaces the running server, and waits until the new one is ready. */
  async #serve(command: string): Promise<void> {
    if (this.#server?.command === command) return;
    await this.#stopServing();
    const child = this.#spawn(command);
    this.#server = { command, child };
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const by = Date.now() + LONGEST;
    while (!(await isReady(this.#here(`http://127.0.0.1:${ADMIN}/readyz`)))) {
      if (child.exitCode !== null || Date.now() > by) throw new Error(`does not serve:\n${command}\n\n${output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async #stopServing(): Promise<void> {
    const child = this.#server?.child;
    this.#server = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const closed = new Promise((resolve) => child.once('close', resolve));
    kill(child, 'SIGKILL');
    await closed;
  }

  /** Starts a server and waits for its first output. */
  async #startServer(script: string): Promise<void> {
    const child = this.#spawn(script);
    const timer = setTimeout(() => kill(child, 'SIGKILL'), LONGEST);
    const closed = new Promise<'closed'>((resolve) => child.once('close', () => resolve('closed')));
    const output = new Promise<'output'>((resolve) => child.stdout?.once('data', () => resolve('output')));
    const first = await Promise.race([output, closed]);
    clearTimeout(timer);
    kill(child, 'SIGKILL');
    if (first === 'closed') throw new Error(`ended without output:\n${script}`);
    await closed;
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

function kill({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The process group has ended.
  }
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : 0));
    });
  });
}
