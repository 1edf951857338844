/** A process that leases parts of a quota from a real Redis, without a gate. */
import { performance } from 'node:perf_hooks';
import type { CalendarQuotaSettings, Instant } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { backgroundTimer } from '../../../src/process/sharing/background-timer.ts';
import type { LeasedQuota } from '../../../src/sharing/quotas/leased-quota.ts';
import { QuotaClient } from '../../../src/sharing/quotas/quota-client.ts';
import { RedisQuotas } from '../../../src/sharing/redis/quotas/redis-quotas.ts';
import type { RedisServer } from '../redis/redis-server.ts';
import { testConnection } from '../redis/test-connection.ts';
import { trySend } from './leasing-world.ts';

export interface QuotaReplica {
  readonly quota: LeasedQuota;
  /** Sends requests, one after another, until so many are sent or `isOver`. Returns how many. */
  send(count: number, isOver: () => boolean, hasPriority?: boolean): Promise<number>;
  /** Returns what is unused. Resolves when Redis has it. */
  close(): Promise<void>;
  /** As a kill does: nothing is returned. */
  kill(): void;
}

function instant(): Instant {
  const now = performance.now();
  return { now, at: now };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function startQuotaReplica(
  redis: RedisServer,
  owner: string,
  settings: CalendarQuotaSettings,
): Promise<QuotaReplica> {
  const client = redis.client({ enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  await new Promise((resolve) => client.once('ready', resolve));
  const { connection } = testConnection(client, { channel: 'quotas', timeout: 1000 });
  const parts = { connection, prefix: 'test', owner, clock: performance, wallClock: () => Date.now() };
  const redisQuotas = new RedisQuotas(parts);
  const killed = new AbortController();
  const quotas = new QuotaClient({
    clock: performance,
    schedule: backgroundTimer,
    isKeeperForgetful: true,
    call: (call, onTerms, each) => {
      if (killed.signal.aborted) return;
      redisQuotas.call(call, (terms) => !killed.signal.aborted && onTerms(terms), each);
    },
  });
  const quota = quotas.makeQuota('api', settings);
  return {
    quota,
    send: async (count, isOver, hasPriority = false) => {
      let sent = 0;
      while (sent < count && !isOver() && !killed.signal.aborted) {
        if (trySend({ quota }, instant(), hasPriority)) sent += 1;
        else await turn();
        if (sent % 50 === 49) await turn();
      }
      return sent;
    },
    close: async () => {
      quotas.close();
      await new Promise<void>((resolve) => {
        quotas.whenIdle(resolve);
      });
    },
    kill: () => {
      killed.abort();
      client.disconnect();
    },
  };
}

/** Whether the quota is used up, as far as this process knows. */
export function isUsedUp({ quota }: Pick<QuotaReplica, 'quota'>, hasPriority = false): boolean {
  return !quota.isLost && quota.untilReset(hasPriority, instant()) > 0;
}
