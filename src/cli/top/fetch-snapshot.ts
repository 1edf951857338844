/** Fetches the data of one frame from the admin API. */
import { problemDetail } from '../../admin/page/sse-client.js';
import type { ClientsPage, ProcessStatus, TimelineEvent } from '../../admin/page/api-types.ts';
import type { TopSnapshot } from './draw-frame.ts';

export interface AdminAccess {
  /** URL of the admin port, such as `http://127.0.0.1:9901`. */
  readonly url: string;
  readonly token: string | undefined;
}

export type SnapshotResult =
  | { readonly kind: 'fetched'; readonly snapshot: TopSnapshot }
  | { readonly kind: 'failed'; readonly message: string };

const REQUEST_TIMEOUT = 10_000;
const CLIENT_LIMIT = 50;
const EVENT_LIMIT = 50;

/** Never rejects: a failure has a message with the cause and a remedy. */
export async function fetchSnapshot(access: AdminAccess): Promise<SnapshotResult> {
  try {
    const [status, clients, timeline] = await Promise.all([
      fetchJson(access, '/api/status', isStatus),
      fetchJson(access, `/api/clients?limit=${CLIENT_LIMIT}`, isClientsPage),
      fetchJson(access, `/api/timeline?limit=${EVENT_LIMIT}`, isTimeline),
    ]);
    return {
      kind: 'fetched',
      snapshot: { status, clients: { total: clients.total, rows: clients.clients }, events: timeline.events },
    };
  } catch (error) {
    return { kind: 'failed', message: describeFailure(error, access) };
  }
}

class RequestDenied extends Error {
  readonly status: number;

  constructor(status: number, why: string) {
    super(why);
    this.status = status;
  }
}

/** The response comes from another program. */
class NotTidegateError extends Error {}

async function fetchJson<T>(
  { url, token }: AdminAccess,
  path: string,
  isExpected: (data: unknown) => data is T,
): Promise<T> {
  const response = await fetch(`${url}${path}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(REQUEST_TIMEOUT),
  });
  if (!response.ok) throw new RequestDenied(response.status, await problemDetail(response));
  const data: unknown = await response.json();
  if (!isExpected(data)) throw new NotTidegateError();
  return data;
}

// The schemas of the API define the responses. These checks only detect another program.

function isStatus(data: unknown): data is ProcessStatus {
  return data instanceof Object && 'upstreams' in data && 'requests' in data;
}

function isClientsPage(data: unknown): data is ClientsPage {
  return data instanceof Object && 'clients' in data && 'total' in data;
}

function isTimeline(data: unknown): data is { readonly events: readonly TimelineEvent[] } {
  return data instanceof Object && 'events' in data;
}

/** The cause, and a remedy. */
function describeFailure(error: unknown, { url, token }: AdminAccess): string {
  if (error instanceof RequestDenied) return describeDenial(error.status, error.message, url, token !== undefined);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  const isNotTidegate = error instanceof NotTidegateError || error instanceof SyntaxError;
  if (isNotTidegate) return `${url} is not the admin port of Tidegate`;
  const why = code ?? (cause instanceof Error ? cause.message : String(cause));
  return `no response from ${url} (${why}): is Tidegate running? Its log line 'listening' shows the address of the admin port`;
}

export function describeDenial(status: number, why: string, url: string, hasToken: boolean): string {
  if (status === 401) {
    return hasToken
      ? `${url} rejects this token: it is not the admin.token of its configuration`
      : `${url} requires the admin token: set --token TOKEN or TIDEGATE_ADMIN_TOKEN`;
  }
  if (status === 404) return `${url} is not the admin port of Tidegate (404)`;
  return `${url} responds with ${status}: ${why}`;
}
