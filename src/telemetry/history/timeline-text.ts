/** Texts of the timeline. */
import type { OperatorEvent, ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { TimelineKind } from './timeline.ts';

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

export function formatOperatorAction(event: OperatorEvent): { readonly kind: TimelineKind; readonly text: string } {
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
    case 'drain':
      return { kind: 'drain', text: 'drain started' };
  }
}

export function formatRoundedRate(perSecond: PerSecond): string {
  return `${perSecond < 10 ? Number(perSecond.toPrecision(2)) : Math.round(perSecond)}/s`;
}

export function formatSeconds(time: Millis): string {
  return `${Math.round(time / 100) / 10} s`;
}
