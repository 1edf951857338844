import type { OperatorEvent } from '../../core/events/operator-events.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { BlockCause } from '../../core/rate/breaker/active-block.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import { formatBlockedPart } from '../format-values.ts';
import {
  formatBlockEnd,
  formatCertificate,
  formatCut,
  formatDeliveryAction,
  formatFailing,
  formatOperatorAction,
  formatOverload,
  formatQuarantined,
  formatRecovered,
  formatReload,
  formatEjected,
  formatReturned,
  formatStateChange,
  NOT_ANSWERING,
} from './timeline-text.ts';
import type { TimelineKind } from './timeline-kinds.ts';

/** A rare event of interest to an operator. */
export interface TimelineEntry {
  /** Increases with each entry and with each change of one: repeated cuts are one entry that changes. */
  readonly order: number;
  /** The number of the entry in this process; unchanged when the entry changes. */
  readonly number: number;
  /** Milliseconds of the epoch. */
  readonly at: Millis;
  readonly kind: TimelineKind;
  readonly upstream: string | undefined;
  /** For display; contains only the hash of a client. */
  readonly text: string;
}

/** The oldest entries beyond this are dropped. */
const MAX_ENTRIES = 500;
/** The same for changes of state alone: a limit at work changes all the time, and must not displace what an operator looks for. */
const MAX_STATE_ENTRIES = 100;
/**
 * Repetitions within this time are one entry, so that a limit that is cut repeatedly does not displace all others. Short enough
 * to show when a rate fell.
 */
const MERGE_WINDOW: Millis = 10_000;

/** An entry that stands for repeated events. */
interface RepeatedEntry {
  readonly since: Millis;
  readonly number: number;
  readonly times: number;
  readonly from: PerSecond;
}

/** The last entries of this process, oldest first. Events of ordinary requests cost one comparison. */
export class Timeline {
  readonly #now: () => Millis;
  readonly #failureOf: (upstream: string) => string | undefined;
  #entries: TimelineEntry[] = [];
  readonly #repeated = new Map<string, RepeatedEntry>();
  /** Upstreams that an operator blocked or unblocked: the state change that follows gets no entry of its own. */
  readonly #operatorBlocks = new Map<string, 'stopped' | 'released'>();
  #order = 0;

  /**
   * @param now milliseconds of the epoch
   * @param failureOf the last failure of an upstream, in words; undefined if there is none
   */
  constructor(now: () => Millis, failureOf: (upstream: string) => string | undefined = () => undefined) {
    this.#now = now;
    this.#failureOf = failureOf;
  }

  /** Entries that are new or changed since `order`; all entries when it is 0. */
  since(order: number): readonly TimelineEntry[] {
    return this.#entries.filter((entry) => entry.order > order);
  }

  get order(): number {
    return this.#order;
  }

  readonly listen = (event: ProxyEvent): void => {
    switch (event.type) {
      case 'cut':
        return this.#addDecrease(event);
      case 'limit-state':
        return this.#addStateChange(event);
      case 'endpoint-ejected': {
        return void this.#add('endpoint', event.upstream, formatEjected(event));
      }
      case 'account-quarantined':
        return void this.#add('account', event.upstream, formatQuarantined(event));
      case 'account-returned':
        return void this.#add('account', event.upstream, `account ${event.account} back in service`);
      case 'endpoint-returned': {
        return void this.#add('endpoint', event.upstream, formatReturned(event));
      }
      case 'overload':
        return void this.#add(event.began ? 'overload' : 'recovered', undefined, formatOverload(event));
      case 'store-degraded':
        return event.isDegraded
          ? void this.#add('store', undefined, `${event.store} ${NOT_ANSWERING}`)
          : void this.#add('recovered', undefined, `${event.store} responds again`);
      case 'reload':
        this.#forgetChangedUpstreams(event.changed);
        return void this.#add('reload', undefined, formatReload(event));
      case 'upstream-failing':
        return void this.#add('failing', event.upstream, formatFailing(event));
      case 'upstream-recovered':
        return void this.#add('recovered', event.upstream, formatRecovered(event));
      case 'certificate':
        return void this.#add(event.status, undefined, formatCertificate(event));
      case 'operator': {
        if (event.action === 'block') this.#operatorBlocks.set(event.upstream, 'stopped');
        else if (event.action === 'unblock' && this.#operatorBlocks.has(event.upstream)) {
          this.#operatorBlocks.set(event.upstream, 'released');
        }
        if ('delivery' in event) return this.#addDeliveryAction(event);
        const { kind, text } = formatOperatorAction(event);
        const upstream = 'upstream' in event ? event.upstream : undefined;
        return void this.#add(kind, upstream, `${text}, by ${event.by}`);
      }
      default:
        return undefined;
    }
  };

  /** Removing an upstream removes its block; a new upstream of that name may be blocked for another reason. */
  #forgetChangedUpstreams(changed: readonly string[] = []): void {
    for (const upstream of this.#operatorBlocks.keys()) {
      const paths = [`upstreams.${upstream}`, `upstreams[${JSON.stringify(upstream)}]`];
      if (paths.some((path) => changed.includes(path))) this.#operatorBlocks.delete(upstream);
    }
  }

  /** An operator may change thousands at once. */
  #addDeliveryAction(event: Extract<OperatorEvent, { delivery: string }>): void {
    const { action, route, upstream, by } = event;
    const format = (times: number): string => `${formatDeliveryAction(event, times)}, by ${by}`;
    this.#addRepeated(action, upstream, `${action}\0${route}\0${by}`, 0, format);
  }

  #addDecrease(event: Extract<ProxyEvent, { type: 'cut' }>): void {
    const { upstream, limit, scope, cause, from } = event;
    const key = `cut\0${upstream}\0${scope}\0${limit ?? ''}\0${cause}`;
    this.#addRepeated('cut', upstream, key, from, (times, first) => formatCut(event, times, first));
  }

  /** Ignores limits of single clients, of which there may be thousands. */
  #addStateChange({
    upstream,
    limit,
    scope,
    from,
    to,
    blocked,
    blockedCause,
    unblocked,
  }: Extract<ProxyEvent, { type: 'limit-state' }>): void {
    if (scope !== 'upstream') return;
    if (limit !== undefined) {
      const kind = to === 'blocked' ? 'blocked' : from === 'blocked' ? 'unblocked' : 'state';
      return this.#addRepeated(kind, upstream, `${kind}\0${upstream}\0${limit}\0${from}\0${to}`, 0, (times) => {
        return `${limit}: ${formatStateChange(from, to, times)}`;
      });
    }
    if (to === 'blocked' && this.#operatorBlocks.has(upstream)) return undefined; // the operator's action has an entry
    if (from === 'blocked') {
      const stopped = this.#operatorBlocks.get(upstream);
      this.#operatorBlocks.delete(upstream);
      if (stopped === 'released') return undefined;
    }
    if (to === 'blocked') {
      const of = blocked === undefined || blocked === 'upstream' ? '' : ` for ${formatBlockedPart(blocked, 'one')}`;
      const why = this.#describeBlock(upstream, blockedCause);
      return void this.#add('blocked', upstream, `blocked${of}${why}: only one probe at a time is sent`);
    }
    if (blocked !== undefined) {
      const part = blocked === 'upstream' ? 'a part of the requests' : formatBlockedPart(blocked, 'one');
      const why = this.#describeBlock(upstream, blockedCause);
      return void this.#add('blocked', upstream, `blocked only for ${part}${why}: other requests pass`);
    }
    if (from === 'blocked') return void this.#add('unblocked', upstream, formatBlockEnd(to));
    if (unblocked !== undefined) {
      const part = unblocked === 'upstream' ? '' : ` for ${formatBlockedPart(unblocked, 'one')}`;
      return void this.#add('unblocked', upstream, `no longer blocked${part}`);
    }
    this.#addRepeated('state', upstream, `state\0${upstream}\0${from}\0${to}`, 0, (times) =>
      formatStateChange(from, to, times),
    );
  }

  #describeBlock(upstream: string, cause: BlockCause | undefined): string {
    switch (cause) {
      case 'rejections':
        return ' (every request is rejected)';
      case 'errors':
        return ` (${this.#failureOf(upstream) ?? 'requests fail'})`;
      case undefined:
        return '';
    }
  }

  #addRepeated(
    kind: TimelineKind,
    upstream: string,
    key: string,
    from: PerSecond,
    format: (times: number, first: PerSecond) => string,
  ): void {
    const known = this.#repeated.get(key);
    const now = this.#now();
    if (known === undefined || now - known.since > MERGE_WINDOW) {
      const number = this.#add(kind, upstream, format(1, from));
      this.#repeated.set(key, { since: now, number, times: 1, from });
      return;
    }
    const times = known.times + 1;
    this.#repeated.set(key, { ...known, times });
    this.#entries = this.#entries.filter(({ number }) => number !== known.number);
    this.#add(kind, upstream, format(times, known.from), known.number);
  }

  /** Returns the number of the entry. */
  #add(kind: TimelineKind, upstream: string | undefined, text: string, number = this.#order + 1): number {
    this.#order += 1;
    this.#entries.push({ order: this.#order, number, at: this.#now(), kind, upstream, text });
    if (kind === 'state') this.#dropOldStates();
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
    return number;
  }

  #dropOldStates(): void {
    const states = this.#entries.filter((entry) => entry.kind === 'state');
    const oldest = states.length > MAX_STATE_ENTRIES ? states[0] : undefined;
    if (oldest !== undefined) this.#entries.splice(this.#entries.indexOf(oldest), 1);
  }
}
