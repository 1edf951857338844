import type { Clock, Millis } from '../../../core/scalars.ts';
import { headersLength } from '../../headers/raw-headers.ts';

/** In bytes; a field is its name and value together, and the path is one too. */
export interface HeadSize {
  readonly largestField: number;
  readonly fieldCount: number;
  /** As SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113 §6.5.2). */
  readonly total: number;
}

/** `:method`, `:scheme`, `:path` and `content-length` with their values except the path. */
const PSEUDO_HEADERS = 256;
/** What RFC 9113 §6.5.2 counts for each field beside its text. */
const FIELD_OVERHEAD = 32;

/** @param headers names and values in turn */
export function measureHead(path: string, headers: readonly string[]): HeadSize {
  let largestField = path.length;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const length = (headers[i] ?? '').length + (headers[i + 1] ?? '').length;
    if (length > largestField) largestField = length;
  }
  const fieldCount = headers.length / 2;
  return {
    largestField,
    fieldCount,
    total: PSEUDO_HEADERS + path.length + headersLength(headers) + fieldCount * FIELD_OVERHEAD,
  };
}

/**
 * A head that no common server closes the connection over. Over larger ones some do, by default: nginx over a field of more than
 * 8 KiB (4 KiB before 1.19.7), Jetty and Netty over 8 KiB in total, HAProxy over about 200 fields or 16 KiB.
 */
const ALWAYS_ACCEPTED: HeadSize = { largestField: 4096, fieldCount: 100, total: 8192 };

/** How long an upstream that has closed a connection with an error is not trusted with larger heads. */
const DISTRUST_TIME: Millis = 10 * 60_000;

/** Responses by which a server may refuse a head for its size. 494 is nginx's own. */
const REFUSALS_OF_SIZE: ReadonlySet<number> = new Set([400, 413, 414, 431, 494]);

/**
 * The largest heads that an endpoint accepts. A request with a larger one may make it close the connection, so it gets a connection
 * without other requests. Once that is answered, heads of that size may share connections.
 */
export class AcceptedHeads {
  readonly #clock: Clock;
  #accepted = ALWAYS_ACCEPTED;
  #distrustedUntil: Millis = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  includes(size: HeadSize): boolean {
    return isWithin(size, this.#accepted);
  }

  /** A request was answered, and its connection stays open. Returns whether larger heads are accepted from now on. */
  onResponse(size: HeadSize, status: number): boolean {
    const isRefused = status >= 500 || REFUSALS_OF_SIZE.has(status);
    if (isRefused || this.includes(size) || this.#clock.now() < this.#distrustedUntil) return false;
    const { largestField, fieldCount, total } = this.#accepted;
    this.#accepted = {
      largestField: Math.max(largestField, size.largestField),
      fieldCount: Math.max(fieldCount, size.fieldCount),
      total: Math.max(total, size.total),
    };
    return true;
  }

  /** A shared connection ended with a request of this size on it. @param wasRejected the endpoint closed it with an error */
  onConnectionLost(size: HeadSize, wasRejected: boolean): void {
    if (isWithin(size, ALWAYS_ACCEPTED)) return;
    this.#accepted = ALWAYS_ACCEPTED;
    if (wasRejected) this.#distrustedUntil = this.#clock.now() + DISTRUST_TIME;
  }
}

function isWithin({ largestField, fieldCount, total }: HeadSize, bounds: HeadSize): boolean {
  return largestField <= bounds.largestField && fieldCount <= bounds.fieldCount && total <= bounds.total;
}
