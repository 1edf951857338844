import type { DeliveryRow } from '../../admin/page/api-types.ts';
import type { DeliveriesApi, FetchResult } from './deliveries-api.ts';
import type { DeliveriesListQuery } from './deliveries-arguments.ts';

/** Deliveries that match at one time. */
export interface MatchingDeliveries {
  readonly count: number;
  /** No later one was counted. Times are ISO 8601, which sorts as text. */
  readonly lastAcceptedAt: string;
  /** Empty if none has ended. */
  readonly lastEndedAt: string;
}

export interface RetryReport {
  readonly matching: number;
  readonly retried: number;
  readonly failed: number;
  /** The first ones. */
  readonly failures: readonly { readonly id: string; readonly why: string }[];
  /** Why it ended before all were tried; null if all were. */
  readonly stopped: string | null;
}

/** More are counted only. */
const MAX_FAILURES = 100;
/** Requests. The proxy stores what several of them change at once, in the time that one takes. */
export const RETRIES_AT_A_TIME = 8;
/** Statuses that concern one delivery: it is gone, or in another state. After others, the rest would fail too. */
const OF_ONE_DELIVERY: ReadonlySet<number> = new Set([404, 409]);

type Failed = Exclude<FetchResult<never>, { readonly kind: 'fetched' }>;

/** Counts page by page: a million of them takes no memory. */
export async function countMatching(
  api: Pick<DeliveriesApi, 'pages'>,
  query: DeliveriesListQuery,
): Promise<{ readonly kind: 'counted'; readonly matching: MatchingDeliveries } | Failed> {
  let [count, lastAcceptedAt, lastEndedAt] = [0, '', ''];
  for await (const page of api.pages(query)) {
    if (page.kind !== 'fetched') return page;
    for (const { acceptedAt, endedAt } of page.data.deliveries) {
      count += 1;
      if (acceptedAt > lastAcceptedAt) lastAcceptedAt = acceptedAt;
      if (endedAt !== null && endedAt > lastEndedAt) lastEndedAt = endedAt;
    }
  }
  return { kind: 'counted', matching: { count, lastAcceptedAt, lastEndedAt } };
}

/** Retries those that were counted, a few at a time, and never more. Those that match only since then are left. */
export async function retryMatching(
  api: Pick<DeliveriesApi, 'pages' | 'change'>,
  query: DeliveriesListQuery,
  matching: MatchingDeliveries,
): Promise<RetryReport> {
  let [retried, failed] = [0, 0];
  const failures: { id: string; why: string }[] = [];
  const report = (stopped: string | null): RetryReport => {
    return { matching: matching.count, retried, failed, failures, stopped };
  };
  for await (const page of api.pages(query)) {
    if (page.kind !== 'fetched') return report(page.failure.message);
    const ids = page.data.deliveries
      .filter((row) => wasCounted(row, matching))
      .map(({ id }) => id)
      .slice(0, matching.count - retried - failed);
    for (let first = 0; first < ids.length; first += RETRIES_AT_A_TIME) {
      const chosen = ids.slice(first, first + RETRIES_AT_A_TIME);
      const results = await Promise.all(chosen.map(async (id) => ({ id, changed: await api.change('retry', id) })));
      let stopped: string | undefined;
      for (const { id, changed } of results) {
        if (changed.kind === 'fetched') retried += 1;
        else if (changed.kind === 'refused' && OF_ONE_DELIVERY.has(changed.status)) {
          failed += 1;
          if (failures.length < MAX_FAILURES) failures.push({ id, why: changed.detail });
        } else stopped = changed.failure.message;
      }
      if (stopped !== undefined) return report(stopped);
    }
  }
  return report(null);
}

function wasCounted({ acceptedAt, endedAt }: DeliveryRow, { lastAcceptedAt, lastEndedAt }: MatchingDeliveries) {
  return acceptedAt <= lastAcceptedAt && (endedAt === null || endedAt <= lastEndedAt);
}
