import {
  type CalendarQuotaSettings,
  SHARER_WINDOW,
  SILENT_AFTER,
} from '../../../core/quota/calendar/calendar-quota.ts';
import { calendarWindow } from '../../../core/quota/calendar/calendar-window.ts';
import { type EpochMillis, periodId } from '../../../core/quota/calendar/quota-period.ts';
import { RecencyMap } from '../../../core/collections/recency-map.ts';
import { MAX_CLIENTS } from '../../../core/quota/clients/class-quotas.ts';
import type { Clock, Millis } from '../../../core/scalars.ts';
import { MAX_LATENESS } from '../../../core/rate/pacer.ts';
import type { CallKeeper, QuotaCall } from '../../quotas/quota-protocol.ts';
import type { RedisKeyConnection } from '../keys/redis-key-commands.ts';
import { KEPT_AFTER, KnownQuota } from './known-quota.ts';
import { parseQuotaReply, type QuotaReply, type UnknownQuota } from './quota-reply.ts';
import { LEASE_QUOTA } from './quota-script.ts';

/** The layout of what is stored. */
const LAYOUT = 'q1';
const COMMAND = 'tidegateLeaseQuota';
/** After a loss of counts, processes have this time to report what they know; each calls once a second. */
const SETTLE_TIME: Millis = 1500;
/** A rolling period is counted in this many parts, and at most two more, as in `makeQuotaCounts`. */
const PARTS = 120;

export interface RedisQuotasParts {
  readonly connection: Pick<RedisKeyConnection, 'client' | 'requests'>;
  readonly prefix: string;
  /** The name of this process, never used by another one. */
  readonly owner: string;
  readonly clock: Clock;
  readonly wallClock: () => EpochMillis;
  /** The maximum number of counts of single clients that it knows, of all upstreams; `MAX_CLIENTS` when absent. A reload may change it. */
  readonly maxClientCounts?: () => number;
}

interface QuotaScriptCall {
  readonly mode: 'lease' | 'read' | 'reset';
  readonly key: string;
  readonly known: KnownQuota;
  readonly call: QuotaCall;
  readonly settings: CalendarQuotaSettings;
}

/** The keeper of quotas that replicas share: Redis counts them. */
export class RedisQuotas {
  readonly #parts: RedisQuotasParts;
  readonly #known = new Map<string, KnownQuota>();
  /** The same of single clients. */
  readonly #knownOfClients = new RecencyMap<string, KnownQuota>();

  constructor(parts: RedisQuotasParts) {
    this.#parts = parts;
    parts.connection.client.defineCommand(COMMAND, { lua: LEASE_QUOTA, numberOfKeys: 1 });
  }

  readonly call: CallKeeper = (call, onTerms, settings) => {
    const key = this.#keyOf(call);
    const known = call.key === undefined ? this.#knownAs(key, settings) : this.#knownOfClient(key, settings);
    this.#run({ mode: 'lease', key, known, call, settings }, (reply, now) => {
      onTerms(reply && 'terms' in reply ? known.onReply(reply, call.upstream, settings, now) : undefined);
    });
  };

  /** An operator's call about the quota of a client. Resolves with undefined if Redis does not respond. */
  inspect(
    mode: 'read' | 'reset',
    upstream: string,
    settings: CalendarQuotaSettings,
  ): Promise<QuotaReply | UnknownQuota | undefined> {
    const { name, key: client, period } = settings;
    const call: QuotaCall = {
      ...{ upstream, name, key: client, period: periodId(period), want: 0, isOrdinary: false, mayUseReserve: false },
      ...{ overdrawn: 0, returns: [], held: 0 },
    };
    // What this process knows of it is restored by its calls that lease parts.
    const known = new KnownQuota(period, this.#parts.wallClock);
    return new Promise((resolve) => this.#run({ mode, key: this.#keyOf(call), known, call, settings }, resolve));
  }

  #keyOf({ upstream, name, period, key }: QuotaCall): string {
    const ofAll = `${this.#parts.prefix}:{${upstream}/quotas}:${LAYOUT}:${name}:${period}`;
    return key === undefined ? ofAll : `${ofAll}:${key}`;
  }

  #knownAs(key: string, { period }: CalendarQuotaSettings): KnownQuota {
    let known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, (known = new KnownQuota(period, this.#parts.wallClock)));
    return known;
  }

  /** What is forgotten of a client that was not seen for longest cannot be restored if Redis loses it. */
  #knownOfClient(key: string, { period }: CalendarQuotaSettings): KnownQuota {
    let known = this.#knownOfClients.use(key);
    if (known !== undefined) return known;
    this.#knownOfClients.set(key, (known = new KnownQuota(period, this.#parts.wallClock)));
    const most = this.#parts.maxClientCounts?.() ?? MAX_CLIENTS;
    while (this.#knownOfClients.size > most) this.#knownOfClients.deleteOldest();
    return known;
  }

  /** @param onDone undefined: Redis has not responded, or its time was in another window twice */
  #run(
    request: QuotaScriptCall,
    onDone: (reply: QuotaReply | UnknownQuota | undefined, now: Millis) => void,
    mayRepeat = true,
  ): void {
    const { key, known, call } = request;
    const { client, requests } = this.#parts.connection;
    const command: unknown = Reflect.get(client, COMMAND);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${COMMAND}`);
    const returns = [...call.returns, ...known.takeLateReturns()];
    const args = this.#argsOf({ ...request, call: { ...call, returns } });
    let isLate = false;
    requests.send({
      op: 'quota',
      run: async () => parseQuotaReply(await Reflect.apply(command, client, [key, ...args])),
      // The granted parts are of no use any more.
      onReceived: (reply) => isLate && 'terms' in reply && known.onLate(reply),
      onDone: (result, now) => {
        isLate = result.kind === 'lost';
        if (result.kind === 'lost') {
          if (result.isUnsent) known.keepReturns(returns);
          return onDone(undefined, now);
        }
        const reply = result.response;
        if (!('wrongWindowAt' in reply)) return onDone(reply, now);
        known.setTime(reply.wrongWindowAt, now);
        // Nothing was done. The next window may just have begun.
        if (mayRepeat) return this.#run({ ...request, call: { ...call, returns } }, onDone, false);
        known.keepReturns(returns);
        onDone(undefined, now);
      },
    });
  }

  #argsOf({ mode, known, call, settings }: QuotaScriptCall): string[] {
    const { limit, reserve, pace, period } = settings;
    const window = periodArgs(period, known.timeAt(this.#parts.clock.now()));
    const { everGranted, used, since, resetAt } = known.lastUnexpired(this.#parts.clock.now());
    const flag = (isSet: boolean): number => (isSet ? 1 : 0);
    return [
      ...[this.#parts.owner, period.kind, ...window, limit, reserve, pace],
      ...[call.want, flag(call.isOrdinary), flag(call.mayUseReserve), call.overdrawn, call.held],
      ...[everGranted, used, since, SETTLE_TIME, SILENT_AFTER, SHARER_WINDOW, MAX_LATENESS, KEPT_AFTER],
      ...[call.since ?? 0, mode, resetAt],
      ...call.returns.flatMap((each) => [each.since, each.count]),
    ].map(String);
  }
}

/** The window of a calendar, or the lengths of a rolling period and of its parts. */
function periodArgs(period: CalendarQuotaSettings['period'], at: EpochMillis): readonly [number, number] {
  if (period.kind === 'rolling') return [period.length, Math.max(1, Math.ceil(period.length / PARTS))];
  const { start, end } = calendarWindow(period.unit, at, period.offsetAt);
  return [start, end];
}
