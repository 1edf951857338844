import { randomBytes } from 'node:crypto';
import type { NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import { SqliteDeliveryStore } from '../../../src/store/deliveries/sqlite-delivery-store.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StateDatabase, type StateDatabaseOptions } from '../../../src/store/sqlite/state-database.ts';

const ROUTE = '/webhooks/stripe';
/** How long an event is remembered. */
const REMEMBERED = 72 * 3_600_000;
const BODY = randomBytes(512).toString('hex');

export interface AcceptedRun {
  readonly rate: number;
  /** Microseconds of processor time for each. */
  readonly cpu: number;
  /** Until it was stored, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** A store in this process, and how many deliveries it has. */
export class MeasuredStore {
  readonly #database: StateDatabase;
  readonly #store: SqliteDeliveryStore;
  #last = 0;

  constructor(options: StateDatabaseOptions, maxCount: number) {
    this.#database = new StateDatabase(options);
    const commit = new GroupCommit({
      db: this.#database.db,
      prepare: () => this.#database.markInUse(),
      schedule: (delay, run) => void (delay === 0 ? setImmediate(run) : setTimeout(run, delay).unref()),
      onProblem: (error) => {
        throw error;
      },
      clock: performance,
    });
    this.#store = new SqliteDeliveryStore({
      ...{ commit, secret: 'a secret of the benchmark', wallClock: () => Date.now(), keepFor: () => 0, maxCount },
      maxBytes: Infinity,
    });
  }

  /** Keeps `concurrency` additions in progress until `isOver`. */
  async accept(concurrency: number, isOver: (accepted: number) => boolean): Promise<AcceptedRun> {
    const waits: number[] = [];
    const since = performance.now();
    const before = process.cpuUsage();
    let running = 0;
    await new Promise<void>((resolve, reject) => {
      const addOne = (): void => {
        const begin = performance.now();
        running += 1;
        this.#store.add(this.#makeDelivery(), ({ kind }) => {
          running -= 1;
          waits.push(performance.now() - begin);
          if (kind !== 'stored') reject(new Error(kind));
          else if (!isOver(waits.length)) addOne();
          else if (running === 0) resolve();
        });
      };
      for (let i = 0; i < concurrency; i += 1) addOne();
    });
    const { user, system } = process.cpuUsage(before);
    const seconds = (performance.now() - since) / 1000;
    const sorted = waits.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
    return { rate: waits.length / seconds, cpu: (user + system) / waits.length, p50: at(0.5), p99: at(0.99) };
  }

  /** Takes and ends deliveries, `concurrency` of them at a time, each with a call of its own. @returns microseconds for each */
  async send(count: number, concurrency: number): Promise<number> {
    const sending: string[] = [];
    const takeOne = async (): Promise<void> => {
      const [due] = (await this.#store.takeDue(ROUTE, Date.now(), 1)).deliveries;
      if (due !== undefined) sending.push(due.delivery.id);
    };
    const before = process.cpuUsage();
    for (let i = 0; i < concurrency; i += 1) await takeOne();
    let ended = 0;
    for (; ended < count && sending.length > 0; ended += 1) {
      const id = sending.shift();
      const attempt = { at: Date.now(), took: 1, status: 200, reason: undefined };
      if (id !== undefined) this.#store.end(id, 'delivered', Date.now(), attempt);
      await takeOne();
      if (ended % concurrency === 0) await new Promise(setImmediate);
    }
    const { user, system } = process.cpuUsage(before);
    await new Promise(setImmediate);
    return (user + system) / ended;
  }

  get waiting(): number {
    return this.#store.totals.counts.waiting;
  }

  close(): void {
    this.#database.close();
  }

  #makeDelivery(): NewDelivery {
    const now = Date.now();
    const n = (this.#last += 1);
    const time = now.toString(16).padStart(12, '0');
    const id = `${time.slice(0, 8)}-${time.slice(8)}-7${randomBytes(2).toString('hex').slice(1)}-8000-${n.toString(16).padStart(12, '0')}`;
    return {
      kind: 'message',
      ...{ id, route: ROUTE, upstream: 'shop', acceptedAt: now, owner: 'ab12cd34', sender: 'ab12cd34' },
      ...{ eventId: `evt_${randomBytes(12).toString('hex')}`, orderKey: undefined, duplicatesUntil: now + REMEMBERED },
      message: {
        ...{ method: 'POST', target: ROUTE, peer: '192.0.2.1' },
        headers: [
          'Host',
          'hooks.example.com',
          'Content-Type',
          'application/json',
          'Stripe-Signature',
          `t=${now},v1=${id}`,
        ],
        body: Buffer.from(BODY),
      },
    };
  }
}
