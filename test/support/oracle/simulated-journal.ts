import type { KeyJournal, StoredWrite } from '../../../src/core/idempotency/key-journal.ts';
import { toStored } from '../../../src/core/idempotency/key-journal.ts';
import type { KeyedWrite } from '../../../src/core/idempotency/keyed-write.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { World } from '../core/world.ts';

/** A commit takes so long at most. */
const MAX_COMMIT: Millis = 3;

/** A disk in virtual time: keeps what was committed when its process is killed. */
export class SimulatedDisk {
  readonly #world: World;
  readonly #random: Random;
  readonly #rows = new Map<number, StoredWrite>();
  #lastId = 0;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  get stored(): (readonly [number, StoredWrite])[] {
    return [...this.#rows].toSorted(([, a], [, b]) => a.firstSentAt - b.firstSentAt);
  }

  /** The journal of one process. @param isAlive what is not committed when it ends is lost */
  openJournal(isAlive: () => boolean): KeyJournal {
    let changed = new Set<KeyedWrite>();
    let waiting: ((isStored: boolean) => void)[] = [];
    let isScheduled = false;
    const commit = (): void => {
      isScheduled = false;
      if (!isAlive()) return;
      for (const write of changed) this.#store(write);
      changed = new Set();
      const due = waiting;
      waiting = [];
      for (const run of due) run(true);
    };
    const schedule = (): void => {
      if (isScheduled) return;
      isScheduled = true;
      this.#world.at(this.#world.now + MAX_COMMIT * this.#random(), commit);
    };
    return {
      onChange: (write) => {
        changed.add(write);
        schedule();
      },
      onSurplus: (writes) => {
        for (const write of writes) changed.add(write);
        schedule();
      },
      whenStored: (run) => {
        waiting.push(run);
        schedule();
      },
    };
  }

  #store(write: KeyedWrite): void {
    const stored = toStored(write);
    if (stored === undefined) {
      this.#rows.delete(write.journalId);
      return;
    }
    if (write.journalId === 0) write.journalId = this.#lastId += 1;
    this.#rows.set(write.journalId, stored);
  }
}
