import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { Millis, RetryPolicy } from '../../core/exchange/attempt-outcome.ts';
import type { LastAttempt, Step, Watched } from '../../core/exchange/exchange-observer.ts';
import type { Weighed } from '../history/byte-bounded-ring.ts';

/** What is kept of a request, to be told when somebody asks. */
export interface Story extends Weighed {
  /** Of all that were kept, from 1. */
  readonly number: number;
  /** Milliseconds of the epoch at which it arrived. */
  readonly arrivedAt: Millis;
  readonly record: RequestRecord;
  /** Undefined where it never became an exchange. */
  readonly identifiedBy: string | undefined;
  readonly retryPolicy: RetryPolicy | undefined;
  /** Where its idempotency key stands, as far as is known; undefined where it has none. */
  readonly key: string | undefined;
  readonly last: LastAttempt | undefined;
  readonly steps: readonly Step[] | undefined;
}

/** Milliseconds of the epoch at the origin of the clock that its exchange ran by. */
export function originOf({ arrivedAt, record }: Pick<Story, 'arrivedAt' | 'record'>): Millis {
  return arrivedAt - record.at;
}

/** A longer path is cut: requests may have one of 32 KiB. */
const LONGEST_PATH = 512;

/** Of the heap of Node 24, rounded up: test/unit/stories.test.ts holds it to what is really taken. */
const SIZE = { story: 900, step: 600 } as const;

/** @param watched undefined where it never became an exchange */
export function keepStory(
  number: number,
  watched: Watched | undefined,
  record: RequestRecord,
  arrivedAt: Millis,
): Story {
  const path = detach(record.path);
  const steps = watched?.steps;
  const described = watched?.describe();
  return {
    number,
    arrivedAt,
    record: { ...record, path },
    identifiedBy: described?.identifiedBy,
    retryPolicy: described?.retryPolicy,
    key: described?.key,
    last: watched?.lastAttempt(),
    steps,
    size: SIZE.story + 2 * path.length + SIZE.step * (steps?.length ?? 0),
  };
}

/** V8 keeps the whole of a text as long as a part of it: here it would be the query, with all that is in it. */
export function detach(path: string): string {
  const cut = path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path;
  return Buffer.from(cut).toString();
}
