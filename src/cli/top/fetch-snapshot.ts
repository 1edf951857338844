/** Asks the admin API once for what a frame needs. */
import { problemOf } from '../../admin/page/sse-client.js';
import type { ClientsPage, Status, TimelineEvent } from '../../admin/page/api-types.ts';
import type { Heard } from './draw-frame.ts';

export interface Source {
  /** Of the admin port, such as `http://127.0.0.1:9901`. */
  readonly url: string;
  readonly token: string | undefined;
}

export type Look =
  | { readonly kind: 'heard'; readonly heard: Heard }
  | { readonly kind: 'failed'; readonly message: string };

const PATIENCE = 10_000;
const CLIENTS = 50;
const EVENTS = 50;

/** Never throws: the message says what was wrong, and what may help. */
export async function look(source: Source): Promise<Look> {
  try {
    const [status, clients, timeline] = await Promise.all([
      ask(source, '/api/status', isStatus),
      ask(source, `/api/clients?limit=${CLIENTS}`, isClientsPage),
      ask(source, `/api/timeline?limit=${EVENTS}`, isTimeline),
    ]);
    return {
      kind: 'heard',
      heard: { status, clients: { total: clients.total, rows: clients.clients }, events: timeline.events },
    };
  } catch (error) {
    return { kind: 'failed', message: explain(error, source) };
  }
}

class Denied extends Error {
  readonly status: number;

  constructor(status: number, why: string) {
    super(why);
    this.status = status;
  }
}

/** Another program answers there. */
class Stranger extends Error {}

async function ask<T>({ url, token }: Source, path: string, isWanted: (data: unknown) => data is T): Promise<T> {
  const response = await fetch(`${url}${path}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(PATIENCE),
  });
  if (!response.ok) throw new Denied(response.status, await problemOf(response));
  const data: unknown = await response.json();
  if (!isWanted(data)) throw new Stranger();
  return data;
}

// What it answers is in its schemas; these tell it from another program.

function isStatus(data: unknown): data is Status {
  return data instanceof Object && 'upstreams' in data && 'requests' in data;
}

function isClientsPage(data: unknown): data is ClientsPage {
  return data instanceof Object && 'clients' in data && 'total' in data;
}

function isTimeline(data: unknown): data is { readonly events: readonly TimelineEvent[] } {
  return data instanceof Object && 'events' in data;
}

/** What was wrong, and what may help. */
function explain(error: unknown, { url, token }: Source): string {
  if (error instanceof Denied) return explainDenial(error.status, error.message, url, token !== undefined);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  const isStranger = error instanceof Stranger || error instanceof SyntaxError;
  if (isStranger) return `${url} does not answer as the admin port of a Tidegate does`;
  const why = code ?? (cause instanceof Error ? cause.message : String(cause));
  return `no answer from ${url} (${why}): does Tidegate run there? Its log says at 'listening' where its admin port is`;
}

export function explainDenial(status: number, why: string, url: string, hasToken: boolean): string {
  if (status === 401) {
    return hasToken
      ? `${url} does not accept this token: admin.token in its config is another`
      : `${url} asks for its admin token: --token TOKEN, or TIDEGATE_ADMIN_TOKEN`;
  }
  if (status === 404) return `${url} does not answer as the admin port of a Tidegate does (404)`;
  return `${url} answers ${status}: ${why}`;
}
