import type { Millis } from '../../src/core/scalars.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';
import type { FaultName, FaultRecord } from './fault-injector.ts';

interface ExpectedLogLine {
  /** Why such a line is expected. */
  readonly because: string;
  readonly fits: (line: LogLine) => boolean;
  /** One of these faults must have overlapped with the line's request; `always`: clients cause it at any time. */
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
  request(
    ({ outcome, reason: lineReason }) =>
      lineReason === reason && (outcome === 'upstream_error' || outcome === 'unknown'),
  );

/** Every expected line at warn or above, and its explanation. */
const EXPECTED: readonly ExpectedLogLine[] = [
  {
    because: 'the client aborted during the response',
    fits: request(
      ({ cut, path }) => cut === true && /^\/(?:(?:feed|secure)\/)?leave\/?|^\/v1\/|^\/broken/.test(String(path)),
    ),
    by: 'always',
  },
  {
    because: 'the client aborted while its write was at the upstream',
    fits: request(({ outcome, unknown }) => outcome === 'client_gone' && unknown === true),
    by: 'always',
  },
  {
    because: 'no connection could be opened',
    fits: failedFor('connect'),
    // A TLS handshake takes four messages.
    by: [...UNREACHABLE, 'all reset', 'answers cut', 'requests cut', 'crumbs', 'delay', 'stall'],
  },
  { because: 'the connection broke before a response', fits: failedFor('reset'), by: [...BROKEN, 'lost answers'] },
  { because: 'no response in time', fits: failedFor('timeout'), by: SLOW },
  {
    // Node may not notice a reset; src/http/upstream/http2/http2-keepalive.ts detects it within 6 s, and perTryTimeout is 5.
    because: 'no response in time, on an HTTP/2 connection with an undetected reset',
    fits: (line) => failedFor('timeout')(line) && line['upstream'] === 'secure',
    by: BROKEN,
  },
  { because: 'the response broke off', fits: request(({ cut }) => cut === true), by: BROKEN },
  {
    because: 'a write ended with an unknown outcome',
    fits: request(({ outcome, status }) => outcome === 'unknown' && Number(status) >= 500),
    by: [...BROKEN, ...SLOW, 'errors'],
  },
  {
    // The request itself was not sent: the outcome of an earlier write is unknown, and was reported then (docs/idempotency.md).
    because: 'the outcome of an earlier write with its key is unknown',
    fits: request(({ outcome, attempts }) => outcome === 'unknown' && attempts === 0),
    by: 'always',
  },
  {
    because: 'this machine was overloaded',
    fits: ({ msg }) => String(msg).startsWith('overload'),
    by: 'always',
  },
  {
    because: 'the upstream accepted nothing',
    fits: ({ msg, to, blocked }) =>
      msg === 'upstream failing' || (msg === 'limit changed state' && (to === 'blocked' || blocked !== undefined)),
    by: [...BROKEN, ...SLOW, 'errors', 'lower limit'],
  },
];

/** For timers and responses in transit, in ms. */
const SLACK: Millis = 1500;
/** Until an undetected reset of an HTTP/2 connection is found: src/http/upstream/http2/http2-keepalive.ts pings after 2 s, and waits 2 s. */
const UNSEEN: Millis = 4000;
/** The attempt behind a limit's change may have been sent this long before: the default of perTryTimeout. */
const ATTEMPT: Millis = 5000;

/** The faults in the 15 s before a line, to help find its cause. */
export function formatRecentFaults(line: LogLine, happened: readonly FaultRecord[]): string {
  const at = Date.parse(String(line['time']));
  const ago = (then: Millis): string => ((at - then) / 1000).toFixed(1);
  const before = happened.filter(({ from, to }) => from <= at && to >= at - 15_000);
  return before.map(({ name, from, to }) => `${name} (${ago(from)} to ${ago(Math.min(to, at))} s before)`).join(', ');
}

/** Why this line is expected; undefined if it is not. */
export function explainLogLine(line: LogLine, happened: readonly FaultRecord[]): string | undefined {
  const until = Date.parse(String(line['time']));
  const unseen = line['cause'] === 'ETIMEDOUT' ? UNSEEN : 0;
  const since = until - Number(line['ms'] ?? ATTEMPT) - SLACK - unseen;
  const atWork = new Set(happened.flatMap(({ name, from, to }) => (from <= until && to >= since ? [name] : [])));
  return EXPECTED.find(({ fits, by }) => fits(line) && (by === 'always' || by.some((name) => atWork.has(name))))
    ?.because;
}
