/** Faults of the database and its disk. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { fillDisk } from '../../support/own-disk.ts';
import { pickOf } from '../../support/oracle/topology.ts';
import type { Fault } from '../fault-injector.ts';
import type { FaultLog } from '../fault-record.ts';
import { StartRefused, type GateProcess } from '../gate-process.ts';

const DISK_FULL_FOR: Millis = 2000;

/** @param folder on a small file system of its own */
export function diskFull(folder: string): Fault {
  const filler = join(folder, 'filler');
  return {
    name: 'disk full',
    inject: async (random) => {
      fillDisk(filler);
      // Tidegate may free a block meanwhile.
      const until = performance.now() + DISK_FULL_FOR * (0.5 + random());
      while (performance.now() < until) {
        await sleep(100);
        fillDisk(filler);
      }
      rmSync(filler);
    },
  };
}

interface Damage {
  readonly name: string;
  /** How the process ends before. */
  readonly after: 'SIGTERM' | 'SIGKILL';
  readonly apply: (file: string, random: Random) => void;
}

/** What docs/reload.md says that Tidegate notices. */
const DAMAGES: readonly Damage[] = [
  { name: 'its log is missing', after: 'SIGKILL', apply: (file) => rmSync(`${file}-wal`) },
  {
    name: 'a byte in the middle of its log is another',
    after: 'SIGKILL',
    apply: (file, random) => {
      const bytes = readFileSync(`${file}-wal`);
      const at = Math.floor(usedBytes(bytes) * (0.2 + 0.5 * random()));
      bytes[at] = (bytes[at] ?? 0) ^ 0xff;
      writeFileSync(`${file}-wal`, bytes);
    },
  },
  { name: 'it is cut', after: 'SIGTERM', apply: (file) => truncateSync(file, Math.floor(statSync(file).size / 2)) },
  {
    name: 'a page of the writes is overwritten',
    after: 'SIGTERM',
    apply: (file) => {
      const page = rootPageOf(file);
      writeFileSync(file, readFileSync(file).fill(0xab, (page - 1) * 4096, page * 4096));
    },
  },
  {
    name: 'its head is overwritten',
    after: 'SIGTERM',
    apply: (file) => writeFileSync(file, readFileSync(file).fill(0, 0, 100)),
  },
];

/** https://www.sqlite.org/fileformat2.html#the_write_ahead_log: a header of 32 bytes, then frames of 24 bytes and a page. */
const FRAME = 24 + 4096;

const NO_LOG = Buffer.alloc(0);

/** The length of what the log contains since it last began again. Frames of before follow it. */
function usedBytes(log: Buffer): number {
  const salt = log.subarray(16, 24);
  let end = 32;
  while (end + FRAME <= log.length && log.subarray(end + 8, end + 16).equals(salt)) end += FRAME;
  return end;
}

function rootPageOf(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const row = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'writes'").get();
    return Number(row?.['rootpage']);
  } finally {
    database.close();
  }
}

/** The start has to end with a message. Restores the database and starts again. */
export function databaseDamaged(gate: Pick<GateProcess, 'kill' | 'drain' | 'start'>, file: string): Fault {
  return {
    name: 'database damaged',
    inject: async (random) => {
      const damage = pickOf(DAMAGES, random);
      const code = damage.after === 'SIGKILL' ? await gate.kill('all') : await gate.drain();
      const log = existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : undefined;
      if (code === 0 && log !== undefined) throw new Error('it ended with 0 after SIGTERM, and its log is there');
      // A log of a few frames has no middle. A process that was too slow to drain leaves a log, which may have the damaged pages.
      const isApplicable = damage.after === 'SIGTERM' ? log === undefined : usedBytes(log ?? NO_LOG) > 16 * FRAME;
      if (isApplicable) {
        const restore = backUp(file);
        damage.apply(file, random);
        const problem = await refusalOf(gate);
        if (problem === undefined) throw new Error(`it started although ${damage.name}`);
        if (!problem.includes(file)) throw new Error(`the message does not name the file: ${problem}`);
        restore();
      }
      await gate.start();
    },
  };
}

function backUp(file: string): () => void {
  const parts = ['', '-wal', '-shm'].filter((end) => existsSync(`${file}${end}`));
  for (const end of parts) copyFileSync(`${file}${end}`, `${file}${end}.kept`);
  return () => {
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
    for (const end of parts) renameSync(`${file}${end}.kept`, `${file}${end}`);
  };
}

/** @returns the message of the refused start; undefined if it serves */
async function refusalOf(gate: Pick<GateProcess, 'start'>): Promise<string | undefined> {
  try {
    await gate.start();
    return undefined;
  } catch (error) {
    if (error instanceof StartRefused) return error.message;
    throw error;
  }
}

const LOST_FOR: Millis = 600;

/**
 * The end of the log is lost, as if an older copy had been restored. Nothing can notice this, so the writes of that time are
 * judged apart.
 */
export function logEndLost(gate: GateProcess, file: string, faults: FaultLog): Fault {
  return {
    name: 'end of the log lost',
    inject: async (random) => {
      const log = `${file}-wal`;
      const [size, salt] = [sizeOf(log), saltOf(log)];
      const from = performance.now();
      await sleep(LOST_FOR * (0.3 + random()));
      await gate.kill('all');
      // A log that has begun again meanwhile has other contents at this size.
      if (size <= 32 || saltOf(log) !== salt || sizeOf(log) === size) return gate.start();
      const restore = backUp(file);
      truncateSync(log, size);
      const to = performance.now();
      // If what is left of the log does not fit the database, this may be noticed.
      if ((await refusalOf(gate)) === undefined) return void faults.lostParts.push({ from, to });
      restore();
      await gate.start();
    },
  };
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

/** Another one each time that the log begins again. */
function saltOf(log: string): string {
  if (!existsSync(log)) return '';
  const head = Buffer.alloc(32);
  const file = openSync(log, 'r');
  readSync(file, head, 0, 32, 0);
  closeSync(file);
  return head.subarray(16, 24).toString('hex');
}
