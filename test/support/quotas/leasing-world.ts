/** Several processes that lease parts of one quota, in virtual time. */
import type { CalendarQuotaSettings, Instant } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { BinaryHeap, type HeapItem } from '../../../src/core/collections/binary-heap.ts';
import { LeasedQuota } from '../../../src/sharing/quotas/leased-quota.ts';
import type { QuotaCall, QuotaTerms } from '../../../src/sharing/quotas/quota-protocol.ts';
import { QuotaKeeper } from '../../../src/sharing/quotas/quota-keeper.ts';
import type { MemoryJournal } from '../core/quota-builders.ts';

interface Scheduled extends HeapItem {
  readonly at: number;
  readonly number: number;
  readonly run: () => void;
}

export interface LeasingProcess {
  readonly quota: LeasedQuota;
  readonly calls: QuotaCall[];
  /** Killed: it does nothing any more. */
  kill(): void;
  /** It does nothing any more, and has not ended. */
  hang(): void;
}

export class LeasingWorld {
  now = 0;
  /** How long a message takes. */
  latency = (): number => 1;
  /** Undefined: the keeper does not respond. */
  keeper: Pick<QuotaKeeper, 'onCall'> | undefined;
  readonly kept: QuotaKeeper;
  /** How far the wall clock of the keeper is ahead of `now`. */
  wallOffset = 0;
  readonly #agenda = new BinaryHeap<Scheduled>((a, b) => a.at < b.at || (a.at === b.at && a.number < b.number));
  #number = 0;
  #processes = 0;
  #settings: CalendarQuotaSettings;

  /** @param settings with a key: of a single client */
  constructor(settings: CalendarQuotaSettings, journal?: MemoryJournal) {
    this.#settings = settings;
    this.kept = new QuotaKeeper({ wallTimeAt: (now) => now + this.wallOffset, journal });
    this.kept.configure([toUpstream(settings)]);
    this.keeper = this.kept;
  }

  get instant(): Instant {
    return { now: this.now, at: this.now };
  }

  start(onSupplied: () => void = () => undefined): LeasingProcess {
    this.#processes += 1;
    const worker = this.#processes;
    let isAlive = true;
    const calls: QuotaCall[] = [];
    this.kept.join(worker);
    const later = (delay: number, run: () => void): void => {
      this.after(delay, () => isAlive && run());
    };
    const quota = new LeasedQuota(this.#settings, {
      upstream: 'up',
      clock: { now: () => this.now },
      isKeeperForgetful: false,
      onSupplied: () => isAlive && onSupplied(),
      schedule: (delay, run) => {
        let isCancelled = false;
        later(delay, () => {
          if (!isCancelled) run();
        });
        return () => {
          isCancelled = true;
        };
      },
      call: (call, onTerms) => {
        calls.push(call);
        this.after(this.latency(), () => {
          const terms: QuotaTerms | undefined = this.keeper?.onCall(worker, call, this.now);
          later(this.latency(), () => onTerms(terms));
        });
      },
    });
    const hang = (): void => {
      isAlive = false;
    };
    const kill = (): void => {
      hang();
      // The messages that it has sent still arrive.
      this.after(100, () => this.kept.leave(worker));
    };
    return { quota, calls, kill, hang };
  }

  configure(settings: CalendarQuotaSettings): void {
    this.#settings = settings;
    this.kept.configure([toUpstream(settings)]);
  }

  after(delay: number, run: () => void): void {
    this.#number += 1;
    this.#agenda.push({ at: this.now + delay, number: this.#number, run, heapIndex: -1 });
  }

  runFor(time: number): void {
    const until = this.now + time;
    for (let next = this.#agenda.peek(); next !== undefined && next.at <= until; next = this.#agenda.peek()) {
      this.#agenda.remove(next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = until;
  }
}

function toUpstream({ key, ...settings }: CalendarQuotaSettings) {
  if (key === undefined) return { name: 'up', quotas: [settings] };
  return { name: 'up', classQuotas: [{ className: 'of-client', shared: [], perClient: [settings] }] };
}

/** Sends a request if the quota allows one at once. Returns whether it does. */
export function trySend({ quota }: Pick<LeasingProcess, 'quota'>, instant: Instant, hasPriority = false): boolean {
  if (quota.delay(hasPriority, instant) > 0) return false;
  quota.reserve(hasPriority, instant.now, instant);
  quota.release();
  quota.onSent(instant);
  return true;
}
