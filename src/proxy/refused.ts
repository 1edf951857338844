import type { RequestRecord } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';
import type { Inbound } from './inbound.ts';
import type { Problem } from './problem.ts';
import { fault } from './problem.ts';

/** What metrics call the route of a request that has none. */
export const NO_ROUTE = '(none)';

export interface Refused {
  readonly request?: Inbound;
  /** As it may be told. */
  readonly path?: string;
  readonly id: string;
  readonly took: Millis;
  /** In seconds, as it was told. */
  readonly retryAfter?: number | undefined;
}

/** What the log gets of a request that never became an exchange. Of one that could not be read nothing is known. */
export function recordRefused(problem: Problem, told: Refused): RequestRecord {
  const { request, path, id, took, retryAfter } = told;
  return {
    id,
    route: NO_ROUTE,
    upstream: '',
    method: request?.verb ?? '',
    path: path ?? '',
    client: '',
    status: problem.status,
    outcome: 'refused',
    reason: problem.reason,
    attempts: 0,
    queued: 0,
    slept: 0,
    toHead: 0,
    took,
    retryAfter,
    cut: false,
  };
}

/** Of another origin nothing is kept: it may carry a password. */
export function pathOf(request: Inbound, tell: (path: string) => string): string {
  return request.target.startsWith('/') ? tell(request.path) : '(absolute)';
}

/**
 * What is told where the parser gave up, or was given up on. Undefined where nothing is to be told: the connection broke,
 * or its client has closed it in the middle of a message.
 */
export function problemOfParser({ code }: NodeJS.ErrnoException): Problem | undefined {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return EXTENSIONS_TOO_LARGE;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return fault(408, 'Request timeout', 'The headers did not come in time.', 'headers_timeout');
    case 'HPE_INVALID_EOF_STATE':
      return undefined;
    default:
      return code?.startsWith('HPE_') === true ? MALFORMED : undefined;
  }
}

export const MALFORMED = fault(400, 'Bad request', 'This is not HTTP/1.1.', 'malformed');
const HEADERS_TOO_LARGE = fault(
  431,
  'Headers too large',
  'The request line and the headers are larger than 32 KiB together.',
  'headers_too_large',
);
const EXTENSIONS_TOO_LARGE = fault(
  413,
  'Content too large',
  'The chunks of the body have more extensions than anybody needs.',
  'extensions_too_large',
);
