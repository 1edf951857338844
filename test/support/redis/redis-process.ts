import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { findProgram } from '../../setup/find-program.ts';
import { endWithThis } from './end-with-this.ts';

export interface RedisProcess {
  readonly port: number;
  readonly pid: number;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it has ended; at once, if it already has. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>;
}

/** By name; a list where a setting has several arguments. */
export type Settings = Readonly<Record<string, string | readonly string[]>>;

export interface Start {
  readonly folder: string;
  readonly settings: Settings;
  readonly password: string | undefined;
  readonly env?: NodeJS.ProcessEnv;
  /** Flags behind the file with the settings. */
  readonly flags?: readonly string[];
}

/** Somebody else listens there. */
class PortTaken extends Error {}

const ATTEMPTS = 20;
/** Below those that outgoing connections are given, so that a port is still free at a restart; a cluster's bus is 10000 above. */
const PORTS = { first: 10_000, count: 12_000 };

/** A folder of its own, removed when the test ends. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-redis-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts one on a port that is free. Resolves when it answers; killed when the test ends. */
export async function startRedisProcess(start: Start): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startRedisAt(PORTS.first + Math.floor(Math.random() * PORTS.count), start);
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === ATTEMPTS) throw error;
    }
  }
}

/** The same on this port. */
export async function startRedisAt(
  port: number,
  { folder, settings, password, env = {}, flags = [] }: Start,
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
  const watchdog = endWithThis(pid, folder);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'close').then(() => void watchdog.kill('SIGKILL'));
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  onTestFinished(() => end('SIGKILL'));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  while (!(await answers(port, pid, password))) {
    if (!hasEnded()) continue;
    await ended;
    throw /already in use/.test(output) ? new PortTaken(output) : new Error(`redis-server ended: ${output}`);
  }
  return { port, pid, signal: (signal) => void child.kill(signal), end };
}

/** As redis.conf has it: an argument in quotes may hold anything. */
function write(settings: Settings): string {
  const line = ([name, value]: [string, string | readonly string[]]): string =>
    `${name} ${[value]
      .flat()
      .map((argument) => JSON.stringify(argument))
      .join(' ')}\n`;
  return Object.entries(settings).map(line).join('');
}

/** Whether it is this very process that answers there. */
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
