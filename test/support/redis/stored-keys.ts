/**
 * Writes with keys in a real Redis, as processes store them, and what an operator sees of them.
 *
 *     const { store, list, inspection } = openKeys(await connectKeys(await startRedis()));
 *     await store(0, 'answered');
 *     await inspection.forget(idOf(0));
 */
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { WriteMatches, WriteQuery } from '../../../src/core/idempotency/key-inspection.ts';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { NameSession, ownersOf } from '../../../src/core/idempotency/name-session.ts';
import type { RegistryKeyClaim } from '../../../src/core/idempotency/registry-key-claim.ts';
import { idOfName, KEY_DIGEST, NAME_DIGEST } from '../../../src/core/idempotency/write-id.ts';
import type { NameChange, SwapResult } from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { RedisKeyBackend } from '../../../src/sharing/redis/keys/redis-key-backend.ts';
import { RedisKeyCommands, type RedisKeyConnection } from '../../../src/sharing/redis/keys/redis-key-commands.ts';
import { type InspectionBounds, RedisKeyInspection } from '../../../src/sharing/redis/keys/redis-key-inspection.ts';
import { RedisResponseStore } from '../../../src/sharing/redis/keys/redis-response-store.ts';
import { RedisNameReader } from '../../../src/sharing/redis/keys/redis-name-reader.ts';
import { atEnd } from '../at-end.ts';
import type { RedisServer } from './redis-server.ts';
import { testConnection } from './test-connection.ts';

const PREFIX = 'p';
/** The open names at the upstream `up`. */
export const OPEN_NAMES = `${PREFIX}:{up/keys}:k3:open`;
export const ANSWERED_NAMES = `${PREFIX}:{up/keys}:k3:answered`;
const DAY = 86_400_000;

/**
 * What a request has done. `claimed`: it has the key. `responding`, `answered`: its response is being sent, or was sent. `repeated`: its
 * response was sent, and one to a repeat is being sent. `unknown`: its outcome is unknown.
 */
export type Progress = 'claimed' | 'responding' | 'answered' | 'repeated' | 'unknown';

export interface StoredWrite {
  readonly version: string;
  readonly session: NameSession;
}

/** The nth name. All have the same key. */
export function nameOf(n: number): string {
  const digits = `${n.toString(16).padStart(8, '0')}${'5a'.repeat(NAME_DIGEST - 4)}${'0f'.repeat(KEY_DIGEST)}`;
  return Buffer.from(digits, 'hex').toString('latin1');
}

export function idOf(n: number): string {
  return idOfName(nameOf(n));
}

/** The key of the state of the nth name at the upstream `up`. */
export function stateKeyOf(n: number): string {
  return `${PREFIX}:{up/keys}:k3:name:${Buffer.from(nameOf(n), 'latin1').toString('hex')}`;
}

/** @param client whose share of the unresolved names the write takes */
export function requestFor(n: number, upstream = 'up', client = 1): KeyClaimRequest {
  return {
    identity: { upstream, name: nameOf(n), credential: 1, owner: client, credentialHeader: 'authorization', body: 1 },
    place: { fairnessKey: 'a', client: 'a' },
    ...{ concurrent: 'refuse', ttl: 60_000, endpoint: 'e1', onStoreLost: 'refuse' },
  };
}

/** A connected client, closed when the test ends. */
export async function connectKeys({ port }: RedisServer): Promise<Redis> {
  const client = new Redis(port, '127.0.0.1');
  atEnd(() => client.disconnect());
  await client.ping();
  return client;
}

/** @param more `maxKeys`: see `state.maxKeys` */
export function openKeys(
  client: RedisKeyConnection['client'],
  bounds: Partial<InspectionBounds> = {},
  more: { readonly maxKeys?: number } = {},
) {
  const { connection, problems } = testConnection(client, { channel: `${PREFIX}:keys`, timeout: 2000 });
  const clock = performance;
  const commands = new RedisKeyCommands({
    ...{ ...connection, maxKeys: 1_000_000, ...more, prefix: PREFIX, timeout: 2000, clock },
  });
  let versions = 0;
  const nextVersion = (): string => `version-${(versions += 1)}`;
  const responses = new RedisResponseStore({ connection, prefix: PREFIX });
  const inspection = new RedisKeyInspection({
    ...{ connection, commands, prefix: PREFIX, owner: 'asked', clock, bounds, nextVersion, responses },
    digestKey: (key) => (key === 'order' ? '\u000f' : '\u0001').repeat(KEY_DIGEST),
    upstreams: () => ['up'],
  });
  const reader = new RedisNameReader({ ...connection, commands, clock });
  /** Of a process. @param ahead by default, times are on the local clock */
  const backendOf = (owner: string, ahead = (upstream: string) => commands.timeOf(upstream).offset): RedisKeyBackend =>
    new RedisKeyBackend({ ...connection, commands, owner, ahead });
  const swap = (
    n: number,
    { state, unresolvedOwner }: Pick<NameSession, 'state' | 'unresolvedOwner'>,
    change: Pick<NameChange, 'expected' | 'next'>,
    { owner = 'one', upstream = 'up' } = {},
  ): Promise<SwapResult> => {
    const more = { state, owners: ownersOf(state), unresolvedOwner, keptFor: DAY, isNews: false };
    return new Promise((resolve) => {
      backendOf(owner).swap({ upstream, name: nameOf(n) }, { ...change, ...more }, resolve);
    });
  };
  /** Stores the nth write as its process leaves it, at a name of which nothing is known. */
  const store = async (
    n: number,
    progress: Progress,
    where: { owner?: string; upstream?: string; client?: number } = {},
  ) => {
    const { owner = 'one', upstream = 'up', client: sharer = 1 } = where;
    // Redis' time is not known before its first answer.
    await new Promise((resolve) => backendOf(owner).read({ upstream, name: nameOf(n) }, false, resolve));
    const session = new NameSession(nameOf(n), undefined, clock);
    session.claim(owner, owner, requestFor(n, upstream, sharer));
    const change = (run: (claim: RegistryKeyClaim) => void): void => void session.change(owner, run);
    if (progress === 'unknown') change((claim) => claim.release({ kind: 'unknown' }));
    const respond = (claim: RegistryKeyClaim): void =>
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    if (progress !== 'claimed' && progress !== 'unknown') change(respond);
    if (progress !== 'claimed' && progress !== 'responding') session.close(owner);
    if (progress === 'repeated') {
      session.claim(`${owner}/repeat`, owner, requestFor(n, upstream, sharer));
      session.change(`${owner}/repeat`, respond);
    }
    const version = nextVersion();
    const result = await swap(n, session, { expected: NO_VERSION, next: version }, where);
    expect(result).toEqual({ kind: 'stored' });
    return { version, session } satisfies StoredWrite;
  };
  const list = async (query: Partial<WriteQuery> = {}): Promise<WriteMatches> => {
    const listed = await inspection.list({ order: 'oldest', limit: 500, ...query });
    if ('kind' in listed) throw new Error(listed.why);
    return listed;
  };
  return { commands, inspection, responses, reader, backendOf, nextVersion, store, swap, list, problems };
}
