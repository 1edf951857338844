import type { Millis } from '../../src/policy/types.ts';
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
  { because: 'the answer broke off', fits: request(({ cut }) => cut === true), by: BROKEN },
  {
    because: 'a write ended as unknown',
    fits: request(({ outcome, status }) => outcome === 'unknown' && Number(status) >= 500),
    by: [...BROKEN, ...SLOW, 'errors'],
  },
  {
    because: 'the upstream let nothing through',
    fits: ({ msg, to }) => msg === 'limit changed' && to === 'blocked',
    by: [...BROKEN, ...SLOW, 'errors', 'lower limit'],
  },
];

/** Timers, and answers that were on their way. */
const SLACK: Millis = 1500;
/** What a limit is judged by may have been sent so long before: the default of perTryTimeout. */
const ATTEMPT: Millis = 5000;

/** Why this line was to be expected; undefined when it was not. */
export function explain(line: LogLine, happened: readonly Happened[]): string | undefined {
  const until = Date.parse(String(line['time']));
  const since = until - Number(line['ms'] ?? ATTEMPT) - SLACK;
  const atWork = new Set(happened.flatMap(({ name, from, to }) => (from <= until && to >= since ? [name] : [])));
  return EXPECTED.find(({ fits, by }) => fits(line) && (by === 'always' || by.some((name) => atWork.has(name))))
    ?.because;
}
