import type { Millis } from '../../core/scalars.ts';
import type { NamedClockSample } from './check-upstreams.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

const PLACE = 'clock of this machine';
/** Dates in `Retry-After` and calendar quotas are off by as much. */
const NOTABLE: Millis = 2000;
/** Signatures of webhooks and tokens have lifetimes of minutes. */
const HARMFUL: Millis = 60_000;

const SET_CLOCK =
  'Let a time service set the clock: timedatectl set-ntp true; then timedatectl timesync-status, or chronyc tracking.';
const EFFECT =
  'tokens, signatures of webhooks, certificates and calendar quotas are judged by it, and times in the log are off';

/**
 * Compares this clock with the median of the servers'. A single server that differs from the others is reported by itself; if
 * there is no majority, the nearest one is taken for right.
 */
export function judgeClock(samples: readonly NamedClockSample[]): DoctorFinding[] {
  const sorted = samples.toSorted((a, b) => a.offset - b.offset);
  const middle = (sorted.length - 1) / 2;
  const median = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
    .filter((sample) => sample !== undefined)
    .toSorted((a, b) => Math.abs(a.offset) - Math.abs(b.offset))[0];
  if (median === undefined) return [skipped('clock', PLACE, 'no server has responded with its time')];
  const own = excess(median.offset, median.error);
  const difference = `${describe(-median.offset)} that of ${median.name}`;
  const finding =
    own < NOTABLE
      ? ok('clock', PLACE, `agrees with ${median.name} within ${formatSeconds(Math.max(NOTABLE, median.error))}`)
      : (own < HARMFUL ? warning : problem)('clock', PLACE, `${difference}: ${EFFECT}`, SET_CLOCK);
  const others = samples.filter(({ offset, error }) => excess(offset - median.offset, error + median.error) >= NOTABLE);
  return [
    finding,
    ...others.map(({ name, offset }) =>
      warning(
        'clock',
        `clock of ${name}`,
        `${describe(offset - median.offset)} that of ${samples.length === 2 ? median.name : 'the other servers'}: times that it reports are off`,
        'Let a time service set its clock, or ask its operator to.',
      ),
    ),
  ];
}

/** What of an offset its error does not explain. */
function excess(offset: Millis, error: Millis): Millis {
  return Math.max(0, Math.abs(offset) - error);
}

function describe(offset: Millis): string {
  return `${formatSeconds(Math.abs(offset))} ${offset > 0 ? 'ahead of' : 'behind'}`;
}

function formatSeconds(ms: Millis): string {
  return `${Math.round(ms / 1000)} s`;
}
