import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { atEnd } from '../at-end.ts';
import { findProgram } from '../../setup/find-program.ts';
import { killOnExit } from './kill-on-exit.ts';

export interface RedisProcess {
  readonly port: number;
  readonly pid: number;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Sends the signal. Resolves when the process has exited. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>;
}

/** Settings by name; a list for several arguments. */
export type RedisSettings = Readonly<Record<string, string | readonly string[]>>;

export interface RedisStart {
  readonly folder: string;
  readonly settings: RedisSettings;
  readonly password: string | undefined;
  readonly env?: NodeJS.ProcessEnv;
  /** Flags after the configuration file. */
  readonly flags?: readonly string[];
}

/** Another process uses the port. */
class PortTaken extends Error {}

const ATTEMPTS = 20;
/** Below the ephemeral ports, so that the port is still free at a restart; a cluster's bus port is 10000 higher. */
const PORTS = { first: 10_000, count: 12_000 };

/** Creates a folder, removed when the test ends. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-redis-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a process on a free port. Resolves when it responds; killed when the test ends. */
export async function startRedisProcess(start: RedisStart): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startRedisAt(PORTS.first + Math.floor(Math.random() * PORTS.count), start);
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Like `startRedisProcess`, on a given port. */
export async function startRedisAt(
  port: number,
  { folder, settings, password, env = {}, flags = [] }: RedisStart,
): Promise<RedisProcess> {
  const program = findProgram('redis-server');
  if (program === undefined) throw new Error('redis-server is not installed: node test/setup/programs.ts tests');
  const file = join(folder, 'redis.conf');
  writeFileSync(file, write({ port: String(port), bind: '127.0.0.1', dir: folder, daemonize: 'no', ...settings }));
  const child = spawn(program, [file, ...flags], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error('redis-server has no pid');
  const watchdog = killOnExit(pid, folder);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'close').then(() => void watchdog.kill('SIGKILL'));
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  atEnd(() => end('SIGKILL'));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  while (!(await answers(port, pid, password))) {
    if (!hasEnded()) continue;
    await ended;
    throw /already in use/.test(output) ? new PortTaken(output) : new Error(`redis-server ended: ${output}`);
  }
  return { port, pid, signal: (signal) => void child.kill(signal), end };
}

/** Formats settings for redis.conf, where a quoted argument may contain any character. */
function write(settings: RedisSettings): string {
  const line = ([name, value]: [string, string | readonly string[]]): string =>
    `${name} ${[value]
      .flat()
      .map((argument) => JSON.stringify(argument))
      .join(' ')}\n`;
  return Object.entries(settings).map(line).join('');
}

/** Whether the process with this pid responds on the port. */
async function answers(port: number, pid: number, password: string | undefined): Promise<boolean> {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    ...(password === undefined ? {} : { password }),
    lazyConnect: true,
    retryStrategy: null,
    enableReadyCheck: false,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.info('server')).includes(`process_id:${pid}\r\n`);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  } finally {
    client.disconnect();
  }
}
