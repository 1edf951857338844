/** Pages of clients and of requests, merged from the lists of all processes. */
import type { ClientsQuery, RequestsQuery } from '../api/query-schemas.ts';
import type { ClientRow, ClientsPage, RequestsPage } from '../api/response-schemas.ts';
import type { ClientRank } from '../../store/clients/client-search.ts';
import { isRankedBefore } from '../../store/clients/client-search.ts';
import type { ClockReading } from './admin-rows.ts';
import { toClientRow, toRequestRow } from './admin-rows.ts';
import { combineClients, mergePages } from './merge-views.ts';
import { requestEndTime } from './live-status.ts';
import { decodeCursor, encodeCursor } from './page-cursor.ts';
import type { ClientView, ProcessGroup } from './process-api.ts';

/** Most restricted first. Undefined if the cursor is not valid. */
export async function readClientsPage(
  processes: ProcessGroup,
  { cursor, limit, state, search, upstream }: ClientsQuery,
  readClocks: () => ClockReading,
): Promise<ClientsPage | undefined> {
  const from =
    cursor === undefined ? { at: readClocks().now, read: NO_CLIENTS_READ } : decodeCursor(cursor, isClientRank);
  if (from === undefined) return undefined;
  const { at, read } = from;
  const results = await processes.query('clients', (process) => {
    return { state, search, upstream, limit, at, after: read.get(process) };
  });
  const lists = new Map([...results].map(([process, { clients }]) => [process, clients]));
  const page = mergePages(lists, (a, b) => isRankedBefore(a.rank, b.rank), limit);
  const reached = new Map(read);
  for (const [process, { rank }] of page.read) reached.set(process, rank);
  const rows = combineClientRows(page.rows);
  // The processes count a client that several of them know once for each; the rows of a single page are counted once here.
  const isWhole = cursor === undefined && page.isAll;
  return {
    total: sum(results.values(), ({ tracked }) => tracked),
    matching: isWhole ? rows.length : sum(results.values(), ({ matching }) => matching),
    clients: rows.map((row) => toClientRow(row, readClocks())),
    next: page.isAll ? null : encodeCursor({ at, read: reached }),
  };
}

/** The client with this key: a row for each upstream at which it is known, the most restricted first. */
export async function readClientRows(
  processes: ProcessGroup,
  key: string,
  clock: ClockReading,
): Promise<readonly ClientRow[]> {
  const limit = Number.MAX_SAFE_INTEGER;
  const results = await processes.query('clients', () => ({ key, limit, at: clock.now }));
  const lists = Array.from(results.values(), ({ clients }) => clients);
  return mostRestrictedClients(lists, limit).map((row) => toClientRow(row, clock));
}

/** Newest first. Undefined if the cursor is not valid. */
export async function readRequestsPage(
  processes: ProcessGroup,
  { cursor, limit, ...filter }: RequestsQuery,
): Promise<RequestsPage | undefined> {
  const from = cursor === undefined ? { read: NO_REQUESTS_READ } : decodeCursor(cursor, isNumber);
  if (from === undefined) return undefined;
  const results = await processes.query('requests', (process) => {
    return { ...filter, limit, before: from.read.get(process) };
  });
  const lists = new Map([...results].map(([process, { requests }]) => [process, requests]));
  const page = mergePages(lists, (a, b) => requestEndTime(a) > requestEndTime(b), limit);
  const reached = new Map(from.read);
  for (const [process, { number }] of page.read) reached.set(process, number);
  return {
    requests: page.rows.map(toRequestRow),
    next: page.isAll ? null : encodeCursor({ at: 0, read: reached }),
  };
}

/** The `limit` most restricted clients of all processes. */
export function mostRestrictedClients(views: Iterable<readonly ClientView[]>, limit: number): ClientView[] {
  const sorted = [...views].flat().toSorted((a, b) => (isRankedBefore(a.rank, b.rank) ? -1 : 1));
  return combineClientRows(sorted).slice(0, limit);
}

/** Merges the rows of a client that several processes know. */
function combineClientRows(rows: readonly ClientView[]): ClientView[] {
  const combined = new Map<string, ClientView>();
  for (const row of rows) {
    const name = `${row.upstream}\0${row.key}`;
    const known = combined.get(name);
    combined.set(name, known === undefined ? row : combineClients(known, row));
  }
  return [...combined.values()];
}

const NO_CLIENTS_READ: ReadonlyMap<number, ClientRank> = new Map();
const NO_REQUESTS_READ: ReadonlyMap<number, number> = new Map();

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isClientRank(value: unknown): value is ClientRank {
  if (typeof value !== 'object' || value === null) return false;
  return ['group', 'value', 'slot'].every((name) => typeof Reflect.get(value, name) === 'number');
}

function sum<T>(values: Iterable<T>, select: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += select(value);
  return total;
}
