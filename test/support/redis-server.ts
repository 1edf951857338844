/**
 * A real Redis on a free port of 127.0.0.1, which remembers nothing beyond its life, and what may befall it.
 *
 *     const redis = await startRedis({ password: 'secret', clock: true });
 *     await redis.client().ping();
 *     redis.freeze();              // takes connections and bytes, and answers nothing
 *     await redis.restart();       // empty, on the same port
 *     redis.shiftClock(-30_000);   // its clock is half a minute behind
 *
 * Ended with the test; and by a watchdog should the test's process be killed.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { findFaketime } from '../setup/find-faketime.ts';
import type { ClientOptions } from './redis/connect.ts';
import { connect } from './redis/connect.ts';
import type { RedisProcess, Settings, Start } from './redis/redis-process.ts';
import { makeFolder, startRedisAt, startRedisProcess } from './redis/redis-process.ts';

export interface RedisOptions {
  readonly password?: string;
  /** As Redis writes it: `64mb`. */
  readonly maxmemory?: string;
  /** What it does when that is full: `noeviction`, `allkeys-lru`. */
  readonly policy?: string;
  /** Resolves when it has what its master has. */
  readonly replicaOf?: RedisServer;
  /** Its clock can be shifted. */
  readonly clock?: boolean;
  /** What else its configuration says. */
  readonly settings?: Settings;
}

export class RedisServer {
  readonly port: number;
  readonly password: string | undefined;
  readonly #start: Start;
  readonly #clock: string | undefined;
  #process: RedisProcess;

  constructor(process: RedisProcess, start: Start, clock: string | undefined) {
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

  /** A connection to it, ended with the test. It tries for ever, every 20 ms, unless told otherwise. */
  client(options: ClientOptions = {}): Redis {
    return connect({
      host: '127.0.0.1',
      port: this.port,
      ...(this.password === undefined ? {} : { password: this.password }),
      ...options,
    });
  }

  /** Dies at once: its connections are reset. Resolves when it has. */
  kill(): Promise<void> {
    return this.#process.end('SIGKILL');
  }

  /** Ends as on a shutdown. Resolves when it has. */
  async stop(): Promise<void> {
    this.thaw();
    await this.#process.end('SIGTERM');
  }

  /** On the same port, empty; killed before, if it lives. Resolves when it answers. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await startRedisAt(this.port, this.#start);
  }

  /** Does nothing from now on. The kernel still takes connections and bytes for it, until its buffers are full. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Goes on, with all that has come meanwhile. */
  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /** For so long it takes commands and runs none. Resolves when that has begun. */
  async pause(ms: number): Promise<void> {
    const client = this.client();
    await client.client('PAUSE', ms, 'ALL');
    client.disconnect();
  }

  /** From now on its clock is so far ahead of this machine's, or behind it where that is negative. */
  shiftClock(ms: number): void {
    if (this.#clock === undefined) throw new Error('started without {clock: true}');
    setClock(this.#clock, ms);
  }
}

/** Resolves when it answers. */
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

function settingsOf({ password, maxmemory, policy, replicaOf, settings }: RedisOptions): Settings {
  return {
    save: '',
    appendonly: 'no',
    // A replica is in step at once, and without a file.
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
 * libfaketime 0.9.10 hangs where a program's malloc is jemalloc's, as Debian's Redis has it (wolfcw/libfaketime#130):
 * each needs the other to begin. So malloc is the C library's here.
 */
function fakeClock(file: string): NodeJS.ProcessEnv {
  const library = findFaketime();
  if (library === undefined) throw new Error('libfaketime is not installed: node test/setup/programs.ts tests');
  return {
    ...(process.platform === 'darwin' ? { DYLD_INSERT_LIBRARIES: library } : { LD_PRELOAD: `${library} libc.so.6` }),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    // Timers of the event loop go on as they are.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/** In one step: Redis reads the file at each look at its clock. */
function setClock(file: string, ms: number): void {
  writeFileSync(`${file}.new`, `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1000).toFixed(3)}\n`);
  renameSync(`${file}.new`, file);
}
