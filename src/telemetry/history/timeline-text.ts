/** Texts of the timeline. */
import type { CertificateEvent } from '../../core/events/certificate-events.ts';
import type { EjectionCause, ReturnCause } from '../../core/events/event-labels.ts';
import type { UpstreamHealthEvent } from '../../core/events/upstream-health-events.ts';
import type { OperatorEvent } from '../../core/events/operator-events.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { CutCause, LimitState } from '../../core/limits/limit-state.ts';
import { describeFailure } from '../describe-failure.ts';
import { describeExpiryEffect, formatTimeLeft, humanizeDuration } from '../format-values.ts';
import type { TimelineKind } from './timeline-kinds.ts';

/** What a store does that stopped to respond. */
export const NOT_ANSWERING = 'does not respond: this process keeps limits on its own';

/** Maximum changed settings that an entry names. */
const MAX_NAMED_CHANGES = 5;

export function formatReload({ ok, problem, changed = [] }: Extract<ProxyEvent, { type: 'reload' }>): string {
  if (!ok) return `configuration not reloaded: ${problem?.split('\n', 1)[0] ?? 'it is invalid'}`;
  const more = changed.length - MAX_NAMED_CHANGES;
  return `configuration reloaded: ${changed.slice(0, MAX_NAMED_CHANGES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

export function formatOverload({ began, cause, shed }: Extract<ProxyEvent, { type: 'overload' }>): string {
  return began ? `overloaded (${cause}): some new requests are refused` : `overload ended: ${shed} refused`;
}

export function formatCertificate({ setting, status, left }: CertificateEvent): string {
  switch (status) {
    case 'expires':
      return `certificate of ${setting} expires in ${formatTimeLeft(left)}`;
    case 'expired':
      return `certificate of ${setting} has expired: ${describeExpiryEffect(setting)}`;
    case 'renewed':
      return `certificate of ${setting} was renewed`;
  }
}

/** In the states' own names, except that an operator would read "open" as an open circuit, which sends nothing. */
export function formatStateChange(from: LimitState, to: LimitState, times: number): string {
  const change = to === 'open' ? 'limit no longer in force' : `${from} → ${to}`;
  return times > 1 ? `${change} (${times} times)` : change;
}

export function formatBlockEnd(to: LimitState): string {
  return `no longer blocked: ${to === 'open' ? 'no limit in force' : to}`;
}

/** `unreachable: connection refused (every attempt fails)`. */
export function formatFailing({
  failedShare,
  failure,
}: Extract<UpstreamHealthEvent, { type: 'upstream-failing' }>): string {
  const percent = Math.min(99, Math.round(100 * failedShare));
  const share = failedShare === 1 ? 'every attempt fails' : `${percent} % of attempts fail`;
  return failure === undefined ? share : `${describeFailure(failure)} (${share})`;
}

export function formatRecovered({
  after,
  failure,
}: Extract<UpstreamHealthEvent, { type: 'upstream-recovered' }>): string {
  const what = failure?.reason === 'connect' ? 'reachable again' : 'attempts succeed again';
  return `${what} after ${humanizeDuration(1000 * Math.round(after / 1000))}`;
}

type DeliveryAction = Extract<OperatorEvent, { delivery: string }>;

/** @param times how many deliveries of the route: `event` is the last of them */
export function formatDeliveryAction({ action, route, delivery }: DeliveryAction, times: number): string {
  const done = action === 'retry' ? 'retried' : 'canceled';
  return times === 1 ? `delivery ${delivery} of ${route} ${done}` : `${times} deliveries of ${route} ${done}`;
}

export function formatOperatorAction(event: Exclude<OperatorEvent, DeliveryAction>): {
  readonly kind: TimelineKind;
  readonly text: string;
} {
  switch (event.action) {
    case 'pin':
      return { kind: 'pin', text: `rate pinned at ${formatRoundedRate(event.rate)}` };
    case 'unpin':
      return { kind: 'unpin', text: 'rate unpinned' };
    case 'block':
      return {
        kind: 'blocked',
        text: event.time === undefined ? 'blocked until it is unblocked' : `blocked for ${formatSeconds(event.time)}`,
      };
    case 'unblock':
      return { kind: 'unblocked', text: 'unblocked' };
    case 'reset':
      return { kind: 'reset', text: `client ${event.client} reset` };
    case 'forget':
      return { kind: 'forget', text: `idempotency key ${event.write} forgotten` };
    case 'drain':
      return { kind: 'drain', text: 'drain started' };
  }
}

function formatRoundedRate(perSecond: PerSecond): string {
  return `${perSecond < 10 ? Number(perSecond.toPrecision(2)) : Math.round(perSecond)}/s`;
}

const EJECTION_TEXT: Readonly<Record<EjectionCause, string>> = {
  failures: '',
  throttled: ', as it asked for a wait',
  checks: ': its health checks fail',
};

const RETURN_TEXT: Readonly<Record<ReturnCause, string>> = {
  trial: 'its trial succeeded',
  panic: 'no other endpoint works',
  checks: 'its health checks succeed',
};

export function formatEjected({ endpoint, cause, time }: Extract<ProxyEvent, { type: 'endpoint-ejected' }>): string {
  return `${endpoint} ejected${time === undefined ? '' : ` for ${formatSeconds(time)}`}${EJECTION_TEXT[cause]}`;
}

export function formatReturned({ endpoint, cause }: Extract<ProxyEvent, { type: 'endpoint-returned' }>): string {
  return `${endpoint} re-admitted: ${RETURN_TEXT[cause]}`;
}

export function formatQuarantined(event: Extract<ProxyEvent, { type: 'account-quarantined' }>): string {
  return `account ${event.account} quarantined for ${formatSeconds(event.time)}: status ${event.status}`;
}

function formatSeconds(time: Millis): string {
  return `${Math.round(time / 100) / 10} s`;
}

const CUT_CAUSE_TEXT: Readonly<Record<CutCause, string>> = {
  first: 'first 429s',
  small: 'a few 429s',
  heavy: 'many 429s',
  places: '429s for requests in flight',
  latency: 'a queue at the upstream',
  blocked: 'every request rejected',
  errors: 'failing requests',
};

/** Maximum digits of rates that differ by little. */
const MAX_DIGITS = 6;

/** `from 120/s to 99/s`, with the digits that show the difference; without "from" if there is no rate before, or no difference. */
function formatChange(from: PerSecond, to: PerSecond): string {
  const text = formatRoundedRate(to);
  if (!Number.isFinite(from)) return `to ${text}`;
  if (formatRoundedRate(from) !== text) return `from ${formatRoundedRate(from)} to ${text}`;
  for (let digits = 2; digits <= MAX_DIGITS; digits += 1) {
    const [before, after] = [from, to].map((rate) => Number(rate.toPrecision(digits)));
    if (before !== after) return `from ${before}/s to ${after}/s`;
  }
  return `to ${text}`;
}

/**
 * From which rate to which, and why: `rate cut from 120/s to 99/s: a few 429s`.
 * @param times how many cuts the entry stands for
 * @param first the rate before the first of them
 */
export function formatCut(
  { limit, scope, cause, from, to }: Extract<ProxyEvent, { type: 'cut' }>,
  times: number,
  first: PerSecond,
): string {
  const whose = scope === 'upstream' ? '' : ` of a ${scope}`;
  if (!Number.isFinite(to) || (scope === 'upstream' && to > from)) {
    // The failures concern a part of the requests, which is blocked alone now. What they had cut before is restored.
    const kept = Number.isFinite(from) ? 'unlimited again' : 'still unlimited';
    const rate = Number.isFinite(to) ? `restored to ${formatRoundedRate(to)}` : kept;
    const part = `only a part of the requests ${cause === 'errors' ? 'fails' : 'is rejected'}`;
    return `rate${whose}${limit === undefined ? '' : `${scope === 'upstream' ? ' of' : ' at'} ${limit}`} ${rate}: ${part}`;
  }
  const why = CUT_CAUSE_TEXT[cause];
  const often = times > 1 ? ` ${times} times` : '';
  const change = (before: PerSecond): string => formatChange(before, to);
  if (scope === 'upstream') {
    return `rate${limit === undefined ? '' : ` of ${limit}`} cut${often} ${change(first)}: ${why}`;
  }
  const at = limit === undefined ? '' : ` at ${limit}`;
  // Several cuts are those of several clients or credentials.
  return times > 1
    ? `rates of ${scope}s${at} cut${often}, last ${change(from)}: ${why}`
    : `rate of a ${scope}${at} cut ${change(from)}: ${why}`;
}
