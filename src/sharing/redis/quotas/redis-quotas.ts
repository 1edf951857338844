import {
  type CalendarQuotaSettings,
  SHARER_WINDOW,
  SILENT_AFTER,
} from '../../../core/quota/calendar/calendar-quota.ts';
import { calendarWindow } from '../../../core/quota/calendar/calendar-window.ts';
import type { EpochMillis } from '../../../core/quota/calendar/quota-period.ts';
import { RecencyMap } from '../../../core/collections/recency-map.ts';
import { MAX_CLIENTS } from '../../../core/quota/clients/class-quotas.ts';
import type { Clock, Millis } from '../../../core/scalars.ts';
import { MAX_LATENESS } from '../../../core/rate/pacer.ts';
import type { CallKeeper, QuotaCall, QuotaTerms } from '../../quotas/quota-protocol.ts';
import type { RedisKeyConnection } from '../keys/redis-key-commands.ts';
import { KEPT_AFTER, KnownQuota } from './known-quota.ts';
import { parseQuotaReply } from './quota-reply.ts';
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
    const { prefix } = this.#parts;
    const key = `${prefix}:{${call.upstream}/quotas}:${LAYOUT}:${call.name}:${call.period}`;
    if (call.key === undefined) return this.#run(key, this.#knownAs(key, settings), call, settings, onTerms, true);
    const keyOfClient = `${key}:${call.key}`;
    this.#run(keyOfClient, this.#knownOfClient(keyOfClient, settings), call, settings, onTerms, true);
  };

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

  #run(
    key: string,
    known: KnownQuota,
    call: QuotaCall,
    settings: CalendarQuotaSettings,
    onTerms: (terms: QuotaTerms | undefined) => void,
    mayRepeat: boolean,
  ): void {
    const { client, requests } = this.#parts.connection;
    const command: unknown = Reflect.get(client, COMMAND);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${COMMAND}`);
    const returns = [...call.returns, ...known.takeLateReturns()];
    const args = this.#argsOf(known, { ...call, returns }, settings);
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
          return onTerms(undefined);
        }
        const reply = result.response;
        if ('terms' in reply) return onTerms(known.onReply(reply, call.upstream, settings, now));
        known.setTime(reply.wrongWindowAt, now);
        // Nothing was done. The next window may just have begun.
        if (mayRepeat) return this.#run(key, known, { ...call, returns }, settings, onTerms, false);
        known.keepReturns(returns);
        onTerms(undefined);
      },
    });
  }

  #argsOf(known: KnownQuota, call: QuotaCall, settings: CalendarQuotaSettings): string[] {
    const { limit, reserve, pace, period } = settings;
    const window = periodArgs(period, known.timeAt(this.#parts.clock.now()));
    const { everGranted, used, since } = known.lastUnexpired(this.#parts.clock.now());
    const flag = (isSet: boolean): number => (isSet ? 1 : 0);
    return [
      ...[this.#parts.owner, period.kind, ...window, limit, reserve, pace],
      ...[call.want, flag(call.isOrdinary), flag(call.mayUseReserve), call.overdrawn, call.held],
      ...[everGranted, used, since, SETTLE_TIME, SILENT_AFTER, SHARER_WINDOW, MAX_LATENESS, KEPT_AFTER],
      call.since ?? 0,
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
