import { join } from 'node:path';

/** `keyed`: a POST with a new idempotency key. */
export type KeysRequest = 'get' | 'unkeyed' | 'keyed';

export interface KeysSetup {
  readonly name: string;
  readonly request: KeysRequest;
  /** Responses are kept for repeats. */
  readonly keeps?: boolean;
  /** Lines of the configuration. @param folder for its files */
  readonly config: (folder: string, redisPort: number) => string;
}

const inMemory = (): string => '';
const inSqlite =
  (durability: 'normal' | 'full') =>
  (folder: string): string =>
    `state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: ${durability}}`;
const inRedis =
  (prefix: string) =>
  (_folder: string, port: number): string =>
    `state: {store: redis, url: "redis://127.0.0.1:${port}", prefix: ${prefix}}`;
const withWorkers = (): string => 'workers: 2';

/** The latencies of others are compared with those of this one. */
export const WITHOUT_KEY = 'no key';
/** The goal of 5000 responses a second is that of this one. */
export const STORED = 'key, sqlite normal';

export const SETUPS: readonly KeysSetup[] = [
  { name: 'GET', request: 'get', config: inMemory },
  { name: 'GET, sqlite normal', request: 'get', config: inSqlite('normal') },
  { name: 'GET, redis', request: 'get', config: inRedis('read') },
  { name: WITHOUT_KEY, request: 'unkeyed', config: inMemory },
  { name: 'no key, sqlite normal', request: 'unkeyed', config: inSqlite('normal') },
  { name: 'no key, sqlite full', request: 'unkeyed', config: inSqlite('full') },
  { name: 'no key, redis', request: 'unkeyed', config: inRedis('plain') },
  { name: 'no key, workers', request: 'unkeyed', config: withWorkers },
  { name: 'key, memory', request: 'keyed', config: inMemory },
  { name: STORED, request: 'keyed', config: inSqlite('normal') },
  { name: 'key, sqlite full', request: 'keyed', config: inSqlite('full') },
  { name: 'key, redis', request: 'keyed', config: inRedis('keyed') },
  { name: 'key, workers', request: 'keyed', config: withWorkers },
  { name: 'key and response, memory', request: 'keyed', keeps: true, config: inMemory },
  {
    name: 'key and response, sqlite normal',
    request: 'keyed',
    keeps: true,
    config: (folder) => `secret: ${'s'.repeat(32)}\n${inSqlite('normal')(folder)}`,
  },
];
