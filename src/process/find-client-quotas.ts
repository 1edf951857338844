import { createHmac } from 'node:crypto';
import { type ClientQuotaInspection, CountedClientQuotas } from '../core/quota/clients/client-quota-inspection.ts';
import type { Clock } from '../core/scalars.ts';
import type { MemoryStore } from '../store/memory-store.ts';
import type { LimitSharing } from './sharing/limit-sharing.ts';

/** Where the quotas of single clients are counted; undefined in a worker whose primary has the counts. */
export function findClientQuotas(
  store: Pick<MemoryStore, 'upstreams'>,
  clock: Clock,
  shared: LimitSharing['quotas'],
): ClientQuotaInspection | undefined {
  if (shared !== undefined) return shared.inspection;
  return new CountedClientQuotas(
    (client, use) => [...store.upstreams()].flatMap(({ classQuotas }) => classQuotas?.forClient(client, use) ?? []),
    () => ({ now: clock.now(), at: Date.now() }),
  );
}

/** The hash of a client that has proven this name, as `ClientIdentity` has it. */
export function hashClientName(secret: string, name: string): string {
  return createHmac('sha256', secret).update(`name\0${name}`).digest('hex').slice(0, 16);
}
