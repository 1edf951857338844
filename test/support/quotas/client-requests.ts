/** Requests of clients with API keys, to several replicas or workers, and a quota that does not begin anew during a test. */
import { TOKEN } from '../admin/admin-api.ts';
import { pause } from '../pause.ts';
import type { Workers } from '../proxy/workers.ts';
import { eventually } from '../proxy/tidegate.ts';
import { type Received, send } from '../clients/send.ts';

const CONCURRENCY = 6;
const DAY_SECONDS = 86_400;

type Gates = readonly Pick<Workers, 'url'>[];

/** Sends so many requests, some at a time, to each replica in turn. A connection that was lost counts as no response. */
export async function sendAs(gates: Gates, key: string, count: number): Promise<Received[]> {
  const responses: Received[] = [];
  let next = 0;
  const sendInTurn = async (): Promise<void> => {
    while (next < count) {
      const gate = gates[(next += 1) % gates.length];
      const response = gate && (await send(gate.url, '/', { headers: ['Tidegate-Key', key] }).catch(() => undefined));
      if (response !== undefined) responses.push(response);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sendInTurn));
  return responses;
}

export function forwarded(responses: readonly Received[]): number {
  return responses.filter(({ status }) => status === 200).length;
}

/**
 * Sends requests until all are refused until the reset of a rolling day. Before that, other processes may still return what they have
 * leased. Returns how many were forwarded.
 */
export async function useUpAs(gates: Gates, key: string): Promise<number> {
  let count = 0;
  await eventually(
    async () => {
      const responses = await sendAs(gates, key, 12);
      count += forwarded(responses);
      return responses;
    },
    (responses) => responses.every((each) => Number(each.header('retry-after') ?? 0) > DAY_SECONDS - 900),
  );
  return count;
}

/** Resets the quotas of a client by its name. Each process uses the new count within a second: waits until then. */
export async function resetQuotas({ adminUrl }: Pick<Workers, 'adminUrl'>, client: string): Promise<void> {
  await eventually(
    () =>
      send(adminUrl, `/api/clients/${client}/quotas/reset`, {
        ...{ method: 'POST', headers: ['Authorization', `Bearer ${TOKEN}`] },
      }),
    ({ status }) => status === 200,
  );
  await pause(1500);
}
