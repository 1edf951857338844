import { randomBytes } from 'node:crypto';
import { MAX_ANSWERED } from '../../core/idempotency/key-records.ts';
import { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { oldSpaceLimit } from '../overload/v8-heap.ts';

/** Heap bytes of one answered write, rounded up, and the share of the heap that all of them may use. */
const BYTES_PER_KEY = 256;
const HEAP_SHARE = 0.1;
/** Bytes of the secret that digests are made with. */
const KEY_SECRET = 32;

export function createKeySecret(): Buffer {
  return randomBytes(KEY_SECRET);
}

/** The keys of writes of this process and its workers. */
export function createKeyStore(clock: Clock): RegistryKeyStore {
  return new RegistryKeyStore(createKeyRegistry(oldSpaceLimit()), clock, cancellableTimer);
}

/** Calls `run` once after this time. @returns a function that cancels it */
export function cancellableTimer(delay: Millis, run: () => void): () => void {
  const timer = setTimeout(run, Math.ceil(delay));
  return () => clearTimeout(timer);
}

/** @param heap maximum heap size in bytes */
export function createKeyRegistry(heap: number): KeyRegistry {
  return new KeyRegistry(
    undefined,
    Math.max(1, Math.min(MAX_ANSWERED, Math.floor((HEAP_SHARE * heap) / BYTES_PER_KEY))),
  );
}
