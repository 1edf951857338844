import type { OperatorEvent, TideEvent } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import { tellPart } from '../explanations/format-values.ts';

export type TimelineKind = (typeof TIMELINE_KINDS)[number];
export const TIMELINE_KINDS = [
  'cut',
  'blocked',
  'unblocked',
  'state',
  'reload',
  'pin',
  'unpin',
  'reset',
  'drain',
  'endpoint',
  'store',
  'overload',
] as const;

/** Something rare that an operator would like to have seen. */
export interface Moment {
  /** Grows with each, and when one has changed: cuts in a row are one that goes on. */
  readonly order: number;
  /** Of this process: that of one that goes on stays. */
  readonly number: number;
  /** Milliseconds of the epoch. */
  readonly at: Millis;
  readonly kind: TimelineKind;
  readonly upstream: string | undefined;
  /** In words; a client by its hash. */
  readonly text: string;
}

/** So many are remembered. */
const MOST = 500;
/** What repeats within so long is one moment: a limit that is cut again and again must not push out everything else. */
const TOGETHER: Millis = 60_000;

/** What repeats. */
interface Series {
  readonly since: Millis;
  readonly number: number;
  readonly times: number;
  readonly from: PerSecond;
}

/** The last moments of this process, oldest first. Listens to events; what is told of every request costs it a comparison. */
export class Timeline {
  readonly #now: () => Millis;
  #moments: Moment[] = [];
  readonly #series = new Map<string, Series>();
  /** Upstreams that an operator has blocked, or let go: that they change is no news then. */
  readonly #stopped = new Map<string, 'stopped' | 'released'>();
  #order = 0;

  /** @param now milliseconds of the epoch */
  constructor(now: () => Millis) {
    this.#now = now;
  }

  /** Those that are new, or have changed, since `order`; all that are remembered when it is 0. */
  since(order: number): readonly Moment[] {
    return this.#moments.filter((moment) => moment.order > order);
  }

  get order(): number {
    return this.#order;
  }

  readonly listen = (event: TideEvent): void => {
    switch (event.type) {
      case 'cut':
        return this.#noteCut(event);
      case 'limit-state':
        return this.#noteState(event);
      case 'endpoint-ejected': {
        const { upstream, endpoint, time } = event;
        return void this.#note('endpoint', upstream, `${endpoint} left out for ${seconds(time)}`);
      }
      case 'endpoint-returned': {
        const why = event.cause === 'trial' ? 'it has passed its trial' : 'none of the others works either';
        return void this.#note('endpoint', event.upstream, `${event.endpoint} is sent to again: ${why}`);
      }
      case 'overload':
        return void this.#note('overload', undefined, overloadText(event));
      case 'store-degraded':
        return void this.#note('store', undefined, `${event.store} ${event.isDegraded ? AWAY : 'answers again'}`);
      case 'reload':
        this.#forgetGone(event.changed);
        return void this.#note('reload', undefined, reloadText(event));
      case 'operator': {
        if (event.action === 'block') this.#stopped.set(event.upstream, 'stopped');
        else if (event.action === 'unblock' && this.#stopped.has(event.upstream)) {
          this.#stopped.set(event.upstream, 'released');
        }
        const { kind, text } = tellAction(event);
        const upstream = 'upstream' in event ? event.upstream : undefined;
        return void this.#note(kind, upstream, `${text}, by ${event.by}`);
      }
      default:
        return undefined;
    }
  };

  /** With an upstream that was taken away its block is gone; one that is added by that name may be blocked for another reason. */
  #forgetGone(changed: readonly string[] = []): void {
    for (const upstream of this.#stopped.keys()) {
      const paths = [`upstreams.${upstream}`, `upstreams[${JSON.stringify(upstream)}]`];
      if (paths.some((path) => changed.includes(path))) this.#stopped.delete(upstream);
    }
  }

  #noteCut({ upstream, limit, scope, cause, from, to }: Extract<TideEvent, { type: 'cut' }>): void {
    this.#repeat('cut', upstream, `cut\0${upstream}\0${scope}\0${limit ?? ''}`, from, (times, first) => {
      const at = limit === undefined ? '' : ` at ${limit}`;
      const whose =
        scope === 'upstream' ? `rate${limit === undefined ? '' : ` of ${limit}`}` : `rates of a ${scope}${at}`;
      if (times > 1 && scope !== 'upstream') return `${whose} cut ${times} times, last to ${rate(to)} (${cause})`;
      const often = times > 1 ? ` ${times} times` : '';
      const before = Number.isFinite(first) ? `from ${rate(first)} to` : 'to';
      return `${whose.replace('rates', 'rate')} cut${often} ${before} ${rate(to)} (${cause})`;
    });
  }

  /** Of limits of single clients there may be thousands. */
  #noteState({
    upstream,
    limit,
    scope,
    from,
    to,
    blocked = 'upstream',
  }: Extract<TideEvent, { type: 'limit-state' }>): void {
    if (scope !== 'upstream') return;
    if (limit !== undefined) {
      const kind = to === 'blocked' ? 'blocked' : from === 'blocked' ? 'unblocked' : 'state';
      return this.#repeat(kind, upstream, `${kind}\0${upstream}\0${limit}`, 0, (times) =>
        times > 1 ? `${limit}: ${from} → ${to} (${times} changes in a row)` : `${limit}: ${from} → ${to}`,
      );
    }
    if (to === 'blocked' && this.#stopped.has(upstream)) return undefined; // as was said
    if (from === 'blocked') {
      const stopped = this.#stopped.get(upstream);
      this.#stopped.delete(upstream);
      if (stopped === 'released') return undefined;
    }
    if (to === 'blocked') {
      const of = blocked === 'upstream' ? '' : ` of ${tellPart(blocked, 'one')}`;
      return void this.#note('blocked', upstream, `blocked: nothing${of} passes but a probe at a time`);
    }
    if (from === 'blocked') {
      const end =
        blocked === 'upstream' ? 'not blocked any more' : `${tellPart(blocked, 'one')} is blocked, others pass`;
      return void this.#note('unblocked', upstream, `${end}: ${to}`);
    }
    this.#repeat('state', upstream, `state\0${upstream}`, 0, (times) =>
      times > 1 ? `${from} → ${to} (${times} changes in a row)` : `${from} → ${to}`,
    );
  }

  #repeat(
    kind: TimelineKind,
    upstream: string,
    key: string,
    from: PerSecond,
    tell: (times: number, first: PerSecond) => string,
  ): void {
    const known = this.#series.get(key);
    const now = this.#now();
    if (known === undefined || now - known.since > TOGETHER) {
      const number = this.#note(kind, upstream, tell(1, from));
      this.#series.set(key, { since: now, number, times: 1, from });
      return;
    }
    const times = known.times + 1;
    this.#series.set(key, { ...known, times });
    this.#moments = this.#moments.filter(({ number }) => number !== known.number);
    this.#note(kind, upstream, tell(times, known.from), known.number);
  }

  /** Returns its number. */
  #note(kind: TimelineKind, upstream: string | undefined, text: string, number = this.#order + 1): number {
    this.#order += 1;
    this.#moments.push({ order: this.#order, number, at: this.#now(), kind, upstream, text });
    if (this.#moments.length > MOST) this.#moments.shift();
    return number;
  }
}

const AWAY = 'does not answer: limits are kept by this process alone';

/** Of settings that changed at once, so many are named. */
const MOST_NAMED = 5;

function reloadText({ ok, problem, changed = [] }: Extract<TideEvent, { type: 'reload' }>): string {
  if (!ok) return `configuration not reloaded: ${problem?.split('\n', 1)[0] ?? 'it is not sound'}`;
  const more = changed.length - MOST_NAMED;
  return `configuration reloaded: ${changed.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function overloadText({ began, cause, shed }: Extract<TideEvent, { type: 'overload' }>): string {
  return began ? `overloaded (${cause}): new requests are turned away` : `overload over: ${shed} turned away`;
}

function tellAction(event: OperatorEvent): { readonly kind: TimelineKind; readonly text: string } {
  switch (event.action) {
    case 'pin':
      return { kind: 'pin', text: `rate held at ${rate(event.rate)}` };
    case 'unpin':
      return { kind: 'unpin', text: 'rate released' };
    case 'block':
      return {
        kind: 'blocked',
        text: event.time === undefined ? 'blocked until it is unblocked' : `blocked for ${seconds(event.time)}`,
      };
    case 'unblock':
      return { kind: 'unblocked', text: 'unblocked' };
    case 'reset':
      return { kind: 'reset', text: `client ${event.client} begins anew` };
    case 'drain':
      return { kind: 'drain', text: 'told to drain' };
  }
}

function rate(perSecond: PerSecond): string {
  return `${perSecond < 10 ? Number(perSecond.toPrecision(2)) : Math.round(perSecond)}/s`;
}

function seconds(time: Millis): string {
  return `${Math.round(time / 100) / 10} s`;
}
