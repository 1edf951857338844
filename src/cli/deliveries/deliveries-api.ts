import type { ChangedDelivery, DeliveriesPage, DeliveryDetails, DeliveryRow } from '../../admin/page/api-types.ts';
import type { AdminTarget, AdminCall, AdminOutcome, CommandFailure } from '../admin-request.ts';
import { AdminConnection, notFromTidegate } from '../admin-request.ts';
import type { DeliveriesListQuery } from './deliveries-arguments.ts';

export type FetchResult<T> =
  | { readonly kind: 'fetched'; readonly data: T }
  | Exclude<AdminOutcome, { readonly kind: 'answered' }>;

/** With a detail for the user. */
const PROBLEMS = [400, 403, 404, 409, 503];
const MIB = 1024 * 1024;
/** A row has some hundred bytes, and the id of its event, which can be as long as a body. */
const MAX_PAGE_BYTES = 16 * MIB;
/** A body has at most `maxBody`, and in JSON up to six times as many bytes. Node has no longer texts than 512 MiB. */
const MAX_MESSAGE_BYTES = 256 * MIB;
const MAX_ROWS = 500;
/** Of the size of a page, if the response is too long. */
const SMALLER = 8;

/** The deliveries of a running proxy. */
export class DeliveriesApi {
  readonly #connection: AdminConnection;
  readonly #admin: string | undefined;

  constructor(connection: AdminConnection, { admin }: AdminTarget) {
    this.#connection = connection;
    this.#admin = admin;
  }

  list(query: DeliveriesListQuery): Promise<FetchResult<DeliveriesPage>> {
    const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, value]],
    );
    const path = `/api/deliveries${given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`}`;
    return this.#fetch({ method: 'GET', path, subject: 'deliveries', maxBytes: MAX_PAGE_BYTES }, isDeliveriesPage);
  }

  /** All that match, page by page, in the order of acceptance. It ends with the first failure. */
  async *pages(query: DeliveriesListQuery): AsyncGenerator<FetchResult<DeliveriesPage>> {
    let { after } = query;
    for (let limit = MAX_ROWS; ; ) {
      const page = await this.list({ ...query, after, limit: String(limit) });
      if (page.kind === 'too_long' && limit > 1) {
        limit = Math.ceil(limit / SMALLER);
        continue;
      }
      yield page;
      if (page.kind !== 'fetched' || page.data.next === null) return;
      after = page.data.next;
    }
  }

  find(id: string, message: boolean): Promise<FetchResult<DeliveryDetails>> {
    const path = `${pathOf(id)}${message ? '?message=true' : ''}`;
    const maxBytes = message ? MAX_MESSAGE_BYTES : MAX_PAGE_BYTES;
    return this.#fetch({ method: 'GET', path, subject: id, maxBytes }, (data): data is DeliveryDetails =>
      isDeliveryRow(data),
    );
  }

  change(action: 'retry' | 'cancel', id: string): Promise<FetchResult<ChangedDelivery>> {
    const call = { method: 'POST', path: `${pathOf(id)}/${action}`, subject: id, maxBytes: MAX_PAGE_BYTES } as const;
    return this.#fetch(call, isChangedDelivery);
  }

  async #fetch<T>(
    call: Omit<AdminCall, 'problems'>,
    isExpected: (data: unknown) => data is T,
  ): Promise<FetchResult<T>> {
    const outcome = await this.#connection.send({ ...call, problems: PROBLEMS });
    if (outcome.kind !== 'answered') return outcome;
    const { payload } = outcome;
    if (isExpected(payload)) return { kind: 'fetched', data: payload };
    return { kind: 'unusable', cause: 'not_tidegate', failure: notFromTidegate(this.#admin) };
  }
}

/** Opens a connection for `use`, and closes it afterwards. @param atATime how many requests it sends at the same time */
export async function withDeliveriesApi<T>(
  access: AdminTarget,
  use: (api: DeliveriesApi) => Promise<T>,
  atATime = 1,
): Promise<T | CommandFailure> {
  const connection = AdminConnection.open(access, atATime);
  if ('kind' in connection) return connection;
  try {
    return await use(new DeliveriesApi(connection, access));
  } finally {
    await connection.close();
  }
}

function pathOf(id: string): string {
  return `/api/deliveries/${encodeURIComponent(id)}`;
}

/** Checks what is printed: the proxy may be of another version. */
function isDeliveriesPage(data: unknown): data is DeliveriesPage {
  if (typeof data !== 'object' || data === null || !('deliveries' in data) || !Array.isArray(data.deliveries)) {
    return false;
  }
  const hasNext = 'next' in data && (data.next === null || typeof data.next === 'string');
  const totals = 'totals' in data ? data.totals : undefined;
  const hasTotals = typeof totals === 'object' && totals !== null && 'counts' in totals && 'bytes' in totals;
  return hasNext && hasTotals && data.deliveries.every(isDeliveryRow);
}

function isDeliveryRow(data: unknown): data is DeliveryRow {
  if (typeof data !== 'object' || data === null) return false;
  const areStrings = ['id', 'route', 'upstream', 'state', 'acceptedAt', 'client'].every(
    (name) => typeof Reflect.get(data, name) === 'string',
  );
  const hasAttempts = 'attempts' in data && typeof data.attempts === 'number';
  return areStrings && hasAttempts && 'lastAttempt' in data && typeof data.lastAttempt === 'object';
}

function isChangedDelivery(data: unknown): data is ChangedDelivery {
  return isDeliveryRow(data) && 'notes' in data && Array.isArray(data.notes);
}
