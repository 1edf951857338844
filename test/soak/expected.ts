import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { LogLine } from '../support/probed.ts';
import type { FaultName, Happened } from './faults.ts';

interface Expected {
  /** Why such a line is no surprise. */
  readonly because: string;
  readonly fits: (line: LogLine) => boolean;
  /** One of them must have been at work while the line's request was; `always`: clients do it at any time. */
  readonly by: readonly FaultName[] | 'always';
}

const UNREACHABLE: readonly FaultName[] = ['outage', 'swallowed', 'no names'];
const BROKEN: readonly FaultName[] = ['outage', 'swallowed', 'no names', 'all reset', 'answers cut', 'requests cut'];
const SLOW: readonly FaultName[] = [
  'swallowed',
  'crumbs',
  'delay',
  'stall',
  'lost answers',
  'requests cut',
  'answers cut',
];

const request = (fits: (line: LogLine) => boolean) => (line: LogLine) => line['msg'] === 'request' && fits(line);
const failedFor = (reason: string) =>
  request(({ outcome, reason: told }) => told === reason && (outcome === 'upstream_error' || outcome === 'unknown'));

/** Every line at warn or above that may be written, and what explains it. */
const EXPECTED: readonly Expected[] = [
  {
    because: 'its client left while it was answered',
    fits: request(
      ({ cut, path }) => cut === true && /^\/(?:(?:feed|secure)\/)?leave\/?|^\/v1\/|^\/broken/.test(String(path)),
    ),
    by: 'always',
  },
  {
    because: 'no connection could be made',
    fits: failedFor('connect'),
    // By TLS, that takes four messages.
    by: [...UNREACHABLE, 'all reset', 'answers cut', 'requests cut', 'crumbs', 'delay', 'stall'],
  },
  { because: 'the connection broke before an answer', fits: failedFor('reset'), by: [...BROKEN, 'lost answers'] },
  { because: 'no answer came in time', fits: failedFor('timeout'), by: SLOW },
  {
    // Node may not notice that its connection is reset; src/http/upstream/http2-keepalive.ts finds out within 6 s, and perTryTimeout is 5.
    because: 'no answer came in time, on a connection over HTTP/2 that was reset unseen',
    fits: (line) => failedFor('timeout')(line) && line['upstream'] === 'secure',
    by: BROKEN,
  },
  { because: 'the answer broke off', fits: request(({ cut }) => cut === true), by: BROKEN },
  {
    because: 'a write ended as unknown',
    fits: request(({ outcome, status }) => outcome === 'unknown' && Number(status) >= 500),
    by: [...BROKEN, ...SLOW, 'errors'],
  },
  {
    // It was not sent itself: what is not known is of a write before it, and was told of then (docs/idempotency.md).
    because: 'nobody knows what came of an earlier write with its key',
    fits: request(({ outcome, attempts }) => outcome === 'unknown' && attempts === 0),
    by: 'always',
  },
  {
    because: 'this machine had too much to do',
    fits: ({ msg }) => String(msg).startsWith('overload'),
    by: 'always',
  },
  {
    because: 'the upstream let nothing through',
    fits: ({ msg, to }) => msg === 'limit changed' && to === 'blocked',
    by: [...BROKEN, ...SLOW, 'errors', 'lower limit'],
  },
];

/** Timers, and answers that were on their way. */
const SLACK: Millis = 1500;
/** Until a connection over HTTP/2 that a fault has killed unseen is found out: src/http/upstream/http2-keepalive.ts asks after 2 s, and waits 2 s. */
const UNSEEN: Millis = 4000;
/** What a limit is judged by may have been sent so long before: the default of perTryTimeout. */
const ATTEMPT: Millis = 5000;

/** The faults of the quarter of a minute before a line, and when they were: for whoever looks for what the line comes from. */
export function tellBefore(line: LogLine, happened: readonly Happened[]): string {
  const at = Date.parse(String(line['time']));
  const ago = (then: Millis): string => ((at - then) / 1000).toFixed(1);
  const before = happened.filter(({ from, to }) => from <= at && to >= at - 15_000);
  return before.map(({ name, from, to }) => `${name} (${ago(from)} to ${ago(Math.min(to, at))} s before)`).join(', ');
}

/** Why this line was to be expected; undefined when it was not. */
export function explain(line: LogLine, happened: readonly Happened[]): string | undefined {
  const until = Date.parse(String(line['time']));
  const unseen = line['cause'] === 'ETIMEDOUT' ? UNSEEN : 0;
  const since = until - Number(line['ms'] ?? ATTEMPT) - SLACK - unseen;
  const atWork = new Set(happened.flatMap(({ name, from, to }) => (from <= until && to >= since ? [name] : [])));
  return EXPECTED.find(({ fits, by }) => fits(line) && (by === 'always' || by.some((name) => atWork.has(name))))
    ?.because;
}
