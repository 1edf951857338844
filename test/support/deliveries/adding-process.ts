// Adds deliveries to a database, and ends some, until it is killed: node adding-process.ts FILE FIRST
// Prints a line for each that is stored, is unavailable, or whose end is stored: `stored 1`, `unavailable 2`, `delivered 1`.

import { writeSync } from 'node:fs';
import { SqliteDeliveryStore } from '../../../src/store/deliveries/sqlite-delivery-store.ts';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { deliveryId, newDelivery, numberOf } from './delivery-place.ts';

const BATCH = 20;
/** Before more are added while nothing can be stored. */
const PAUSE = 20;

const [file = '', first = '1'] = process.argv.slice(2);
const database = new StateDatabase({ file, durability: 'normal' });
const commit = new GroupCommit({
  db: database.db,
  prepare: () => database.markInUse(),
  schedule: (delay, run) => void (delay === 0 ? setImmediate(run) : setTimeout(run, delay)),
  onProblem: () => undefined,
  clock: performance,
});
const wallClock = () => Date.now();
const store = new SqliteDeliveryStore({ commit, secret: 'a secret', wallClock, keepFor: () => 3_600_000 });
let last = Number(first) - 1;

const print = (kind: string, n: number): void => void writeSync(1, `${kind} ${n}\n`);

async function addBatch(): Promise<void> {
  const taken = await store.takeDue('/hooks', wallClock(), BATCH / 2);
  const ended = taken.deliveries.map(({ delivery }) => delivery.id);
  const attempt = { at: wallClock(), took: 1, status: 200, reason: undefined };
  for (const id of ended) store.end(id, 'delivered', wallClock(), attempt);
  let missing = BATCH;
  let pause = 0;
  for (let i = 0; i < BATCH; i += 1) {
    const n = (last += 1);
    const orderKey = n % 4 === 0 ? `key-${n % 3}` : undefined;
    store.add(newDelivery(n, { acceptedAt: wallClock(), eventId: deliveryId(n), orderKey }), ({ kind }) => {
      print(kind, n);
      if (kind === 'unavailable') pause = PAUSE;
      missing -= 1;
      if (missing === 0) void printEnded(ended).then(() => setTimeout(() => void addBatch(), pause));
    });
  }
}

/** Prints those whose end is stored. */
async function printEnded(ids: readonly string[]): Promise<void> {
  for (const id of ids) if ((await store.find(id))?.state.kind === 'delivered') print('delivered', numberOf(id));
}

void addBatch();
