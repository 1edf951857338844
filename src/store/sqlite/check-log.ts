import type { Millis } from '../../core/scalars.ts';
import { describeLoss, StateDatabaseError } from './state-database-error.ts';
import { presentBoot, readMark, type UseMark } from './use-mark.ts';
import { type LogContents, type RecoverableLog, readWriteAheadLog } from './write-ahead-log.ts';

export interface CheckedLog {
  /** SQLite has to recover at least so many frames. */
  readonly frames: number;
  /** The end of the log is lost, as after a loss of power without a sync for each commit. */
  readonly hasLostEnd: boolean;
}

const NOTHING: CheckedLog = { frames: 0, hasLostEnd: false };
/** An earlier process that is ending changes the files meanwhile. */
const SECOND_LOOK: Millis = 100;

/**
 * Finds out whether SQLite will recover all that the last process has stored. SQLite itself takes a log that is missing for an empty
 * one, and ignores all after a damaged frame. Call it before SQLite opens the files, because that may delete the log.
 * @throws StateDatabaseError
 */
export function checkLog(file: string): CheckedLog {
  const found = look(file);
  if (typeof found !== 'string') return found;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SECOND_LOOK);
  const again = look(file);
  if (typeof again !== 'string') return again;
  throw new StateDatabaseError(describeLoss(file, again));
}

/** @returns a string: what is wrong */
function look(file: string): CheckedLog | string {
  const log = readWriteAheadLog(`${file}-wal`); // first: a process that ends removes the mark before the log
  const mark = readMark(file);
  if (mark === 'empty') {
    const isAlone = log.problem === 'missing' || log.problem === 'empty';
    return isAlone ? NOTHING : `${file} is missing or empty, but ${file}-wal is there`;
  }
  return mark === undefined ? NOTHING : judge(file, log, mark);
}

function judge(file: string, log: LogContents, mark: UseMark): CheckedLog | string {
  const boot = presentBoot();
  if (log.problem === 'header') return `the header of ${file}-wal is damaged`;
  if (log.problem !== undefined) return `${file}-wal is ${log.problem}, although the last process did not remove it`;
  if (log.unreachable > mostLostWithPower(mark, boot)) {
    return `${file}-wal is damaged after frame ${log.recovered}: later ones cannot be recovered`;
  }
  return { frames: log.recovered, hasLostEnd: hasLost(log, mark) };
}

/** How many transactions after a gap a loss of power explains: the disk may store what is not yet synced in any order. */
function mostLostWithPower({ isSynced, boot }: UseMark, present: number): number {
  if (boot !== 0 && boot === present) return 0;
  return isSynced ? 1 : Infinity; // the one whose sync has not ended: nothing of it was sent
}

function hasLost({ unreachable }: RecoverableLog, { isSynced }: UseMark): boolean {
  return unreachable > 0 && !isSynced;
}
