/**
 * A real Redis without persistence on a free port of 127.0.0.1, and its faults.
 *
 *     const redis = await startRedis({ password: 'secret', clock: true });
 *     await redis.client().ping();
 *     redis.freeze();              // accepts connections and bytes, and does not respond
 *     await redis.restart();       // empty, on the same port
 *     redis.shiftClock(-30_000);   // its clock is half a minute behind
 *
 * It is killed when the test ends, or by a watchdog if the test's process is killed.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { findFaketime } from '../../setup/find-faketime.ts';
import type { ClientOptions } from './connect.ts';
import { connect } from './connect.ts';
import type { RedisProcess, RedisSettings, RedisStart } from './redis-process.ts';
import { makeFolder, startRedisAt, startRedisProcess } from './redis-process.ts';

/**
 * Problems that name the end of Redis. Which of them depends on what a connection does at that moment: it ends while idle, or
 * with a command under way, or another one is refused.
 */
export const REDIS_ENDED = String.raw`(?:connect ECONNREFUSED 127\.0\.0\.1:\d+|(?:read|write) (?:ECONNRESET|EPIPE)|the connection was closed)`;

export interface RedisOptions {
  readonly password?: string;
  /** In the notation of Redis: `64mb`. */
  readonly maxmemory?: string;
  /** The eviction policy: `noeviction`, `allkeys-lru`. */
  readonly policy?: string;
  /** The master to replicate; the start resolves when the replica is in sync. */
  readonly replicaOf?: RedisServer;
  /** Makes its clock adjustable. */
  readonly clock?: boolean;
  /** Other settings. */
  readonly settings?: RedisSettings;
}

export class RedisServer {
  readonly port: number;
  readonly password: string | undefined;
  readonly #start: RedisStart;
  readonly #clock: string | undefined;
  #process: RedisProcess;

  constructor(process: RedisProcess, start: RedisStart, clock: string | undefined) {
    this.port = process.port;
    this.password = start.password;
    this.#start = start;
    this.#clock = clock;
    this.#process = process;
  }

  get url(): string {
    const credentials = this.password === undefined ? '' : `:${encodeURIComponent(this.password)}@`;
    return `redis://${credentials}127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Opens a connection, closed when the test ends. By default it reconnects every 20 ms without limit. */
  client(options: ClientOptions = {}): Redis {
    return connect({
      host: '127.0.0.1',
      port: this.port,
      ...(this.password === undefined ? {} : { password: this.password }),
      ...options,
    });
  }

  /** Kills it, which resets its connections. Resolves when it has exited. */
  kill(): Promise<void> {
    return this.#process.end('SIGKILL');
  }

  /** Shuts it down. Resolves when it has exited. */
  async stop(): Promise<void> {
    this.thaw();
    await this.#process.end('SIGTERM');
  }

  /** Kills it if it runs, and starts it again, empty, on the same port. Resolves when it responds. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await startRedisAt(this.port, this.#start);
  }

  /** Stops the process. The kernel still accepts connections and bytes until its buffers are full. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Continues the process, with everything received meanwhile. */
  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /** Delays all commands for this many milliseconds. Resolves when the delay has begun. */
  async pause(ms: number): Promise<void> {
    const client = this.client();
    await client.client('PAUSE', ms, 'ALL');
    client.disconnect();
  }

  /** Sets its clock ahead of this machine's, or behind it for a negative value. */
  shiftClock(ms: number): void {
    if (this.#clock === undefined) throw new Error('started without {clock: true}');
    setClock(this.#clock, ms);
  }
}

/** Starts Redis. Resolves when it responds. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = makeFolder();
  const clock = options.clock === true ? join(folder, 'clock') : undefined;
  if (clock !== undefined) setClock(clock, 0);
  const env = clock === undefined ? {} : fakeClock(clock);
  const start = { folder, settings: settingsOf(options), password: options.password, env };
  const server = new RedisServer(await startRedisProcess(start), start, clock);
  if (options.replicaOf !== undefined) await inStep(server);
  return server;
}

async function inStep(replica: RedisServer): Promise<void> {
  const client = replica.client();
  while (!(await client.info('replication')).includes('master_link_status:up')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.disconnect();
}

function settingsOf({ password, maxmemory, policy, replicaOf, settings }: RedisOptions): RedisSettings {
  return {
    save: '',
    appendonly: 'no',
    // A replica synchronises at once, without a file.
    'repl-diskless-sync': 'yes',
    'repl-diskless-sync-delay': '0',
    ...(password === undefined ? {} : { requirepass: password, masterauth: password }),
    ...(maxmemory === undefined ? {} : { maxmemory }),
    ...(policy === undefined ? {} : { 'maxmemory-policy': policy }),
    ...(replicaOf === undefined ? {} : { replicaof: ['127.0.0.1', String(replicaOf.port)] }),
    ...(replicaOf?.password === undefined ? {} : { masterauth: replicaOf.password }),
    ...settings,
  };
}

/**
 * libfaketime 0.9.10 hangs with jemalloc, which Debian's Redis uses (wolfcw/libfaketime#130), because each needs the other
 * to initialise. Therefore malloc is the C library's here.
 */
function fakeClock(file: string): NodeJS.ProcessEnv {
  const library = findFaketime();
  if (library === undefined) throw new Error('libfaketime is not installed: node test/setup/programs.ts tests');
  return {
    ...(process.platform === 'darwin' ? { DYLD_INSERT_LIBRARIES: library } : { LD_PRELOAD: `${library} libc.so.6` }),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    // Timers of the event loop are not affected.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/** Writes the file atomically, because Redis reads it at each access to its clock. */
function setClock(file: string, ms: number): void {
  writeFileSync(`${file}.new`, `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1000).toFixed(3)}\n`);
  renameSync(`${file}.new`, file);
}
