/** The write-ahead log that a process finds after the previous process was killed. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { encodeMark, presentBoot } from '../../../src/store/sqlite/use-mark.ts';
import { readWriteAheadLog } from '../../../src/store/sqlite/write-ahead-log.ts';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';

const HEADER = 32;
const FRAME = 24 + 4096;

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const open = (file: string, durability: 'full' | 'normal' = 'full') => new StateDatabase({ file, durability });

/** Returns a copy of the files as they are when a process is killed. @param commits after the start */
function killed(options: { commits?: number; durability?: 'full' | 'normal'; otherBoot?: boolean } = {}) {
  const { commits = 5, durability = 'full', otherBoot = false } = options;
  const folder = makeFolder();
  const live = join(folder, 'live.db');
  const file = join(folder, 'state.db');
  const database = open(live, durability);
  if (otherBoot) {
    const mark = encodeMark({ isSynced: durability === 'full', boot: presentBoot() ^ 4 });
    database.db.exec(`PRAGMA user_version = ${mark}`);
  }
  database.db.exec('PRAGMA wal_checkpoint'); // the first commit restarts the log
  for (let i = 1; i <= commits; i += 1) database.writeLearned(`state ${i}`);
  for (const suffix of ['', '-wal']) copyFileSync(`${live}${suffix}`, `${file}${suffix}`);
  database.close();
  const change = (edit: (log: Buffer) => void): void => {
    const log = readFileSync(`${file}-wal`);
    edit(log);
    writeFileSync(`${file}-wal`, log);
  };
  return { file, log: `${file}-wal`, change, frame: (nth: number) => HEADER + nth * FRAME };
}

function reopen(file: string, durability: 'full' | 'normal' = 'full') {
  const database = open(file, durability);
  onTestFinished(() => database.close());
  return { learned: database.readLearned(), hasLostEnd: database.hasLostEnd };
}

describe('the log of a process that was killed', () => {
  test('is recovered completely', () => {
    const { file, log } = killed();
    expect(readWriteAheadLog(log)).toEqual({ recovered: 5, unreachable: 0 });
    expect(reopen(file)).toEqual({ learned: 'state 5', hasLostEnd: false });
  });

  test('is recovered also if nothing was stored since the start, or the process was killed again', () => {
    const { file } = killed({ commits: 0 });
    expect(reopen(file)).toEqual({ learned: undefined, hasLostEnd: false });
    const twice = join(makeFolder(), 'state.db');
    for (const suffix of ['', '-wal']) copyFileSync(`${file}${suffix}`, `${twice}${suffix}`);
    expect(reopen(twice)).toEqual({ learned: undefined, hasLostEnd: false });
  });

  test('is recovered up to a transaction that is incomplete', () => {
    const { file, log, frame } = killed();
    truncateSync(log, frame(4) + 100);
    expect(reopen(file)).toEqual({ learned: 'state 4', hasLostEnd: false });
  });

  test('is found if the file is a symbolic link', () => {
    const { file, log } = killed();
    const link = join(makeFolder(), 'link.db');
    symlinkSync(file, link);
    expect(reopen(link)).toEqual({ learned: 'state 5', hasLostEnd: false });
    const lost = killed();
    const other = join(makeFolder(), 'link.db');
    symlinkSync(lost.file, other);
    rmSync(lost.log);
    expect(() => open(other)).toThrow('state.db-wal is missing');
    expect(existsSync(log)).toBe(true);
  });

  test('may contain frames of an older log, which are no damage', () => {
    const folder = makeFolder();
    const live = join(folder, 'live.db');
    const database = open(live);
    for (let i = 1; i <= 9; i += 1) database.writeLearned(`old ${i}`);
    database.db.exec('PRAGMA wal_checkpoint(RESTART)');
    database.writeLearned('new');
    const file = join(folder, 'state.db');
    for (const suffix of ['', '-wal']) copyFileSync(`${live}${suffix}`, `${file}${suffix}`);
    database.close();
    expect(readWriteAheadLog(`${file}-wal`)).toEqual({ recovered: 1, unreachable: 0 });
    // Killed when the log began: only the header is new, and the file has all data.
    const log = readFileSync(`${file}-wal`);
    writeFileSync(`${file}-wal`, log.fill(0, HEADER, HEADER + FRAME));
    expect(reopen(file)).toEqual({ learned: 'old 9', hasLostEnd: false });
  });

  test.each<[string, string, (files: ReturnType<typeof killed>) => void]>([
    ['is missing', '-wal is missing', ({ log }) => rmSync(log)],
    ['is empty', '-wal is empty', ({ log }) => truncateSync(log, 0)],
    ['has no header', 'the header of .*-wal is damaged', ({ change }) => change((log) => log.fill(0, 0, HEADER))],
    ['has a cut header', 'the header of .*-wal is damaged', ({ log }) => truncateSync(log, 20)],
    [
      'has a damaged page',
      '-wal is damaged after frame 2',
      ({ change, frame }) => change((log) => log.fill(7, frame(2) + 1000, frame(2) + 1010)),
    ],
    [
      'has a damaged frame',
      '-wal is damaged after frame 2',
      ({ change, frame }) => change((log) => log.fill(7, frame(2), frame(3))),
    ],
    [
      'has a damaged first frame',
      '-wal is damaged after frame 0',
      ({ change, frame }) => change((log) => log.fill(0, frame(0), frame(1))),
    ],
    ['is alone', 'state.db is missing or empty, but .*-wal is there', ({ file }) => rmSync(file)],
  ])('stops the start if it %s, and nothing is changed', (_, message, damage) => {
    const files = killed();
    damage(files);
    const { file, log } = files;
    const before = existsSync(log) ? readFileSync(log) : undefined;
    const advice = `; restore .*/state.db and .*/state.db-wal together from where they were, or move both away`;
    for (let i = 0; i < 2; i += 1) expect(() => open(file)).toThrow(new RegExp(`^state.file: .*${message}.*${advice}`));
    expect(existsSync(log) ? readFileSync(log) : undefined).toEqual(before);
  });
});

describe('after a loss of power', () => {
  test.each([
    ['full', 3, 'state 3', false],
    ['normal', 1, 'state 1', true],
  ] as const)('transactions that were not synced may be lost: %s', (durability, lost, learned, hasLostEnd) => {
    const { file, change, frame } = killed({ durability, otherBoot: true });
    change((log) => log.fill(0, frame(lost), frame(lost) + 5000));
    expect(reopen(file)).toEqual({ learned, hasLostEnd });
  });

  test('the remaining frames do not count as damage later', () => {
    const { file, log, change, frame } = killed({ durability: 'normal', otherBoot: true });
    change((bytes) => bytes.fill(0, frame(0), frame(1)));
    const database = open(file, 'normal');
    const after = join(makeFolder(), 'state.db');
    for (const suffix of ['', '-wal']) copyFileSync(`${file}${suffix}`, `${after}${suffix}`);
    expect([database.hasLostEnd, readWriteAheadLog(log)]).toEqual([true, { recovered: 1, unreachable: 0 }]);
    database.close();
    expect(reopen(after, 'normal')).toEqual({ learned: undefined, hasLostEnd: false });
  });

  test('the loss of more than the last transaction is damage if each was synced', () => {
    const { file, change, frame } = killed({ otherBoot: true });
    change((log) => log.fill(7, frame(2) + 100, frame(2) + 200));
    expect(() => open(file)).toThrow('-wal is damaged after frame 2');
  });
});

describe('a database that was closed', () => {
  test('needs no log', () => {
    const file = join(makeFolder(), 'state.db');
    const first = open(file);
    first.writeLearned('one');
    first.close();
    expect([existsSync(`${file}-wal`), reopen(file).learned]).toEqual([false, 'one']);
  });

  test('needs no log even if its start failed', () => {
    const { file } = killed();
    const program = new DatabaseSync(file);
    program.exec("UPDATE meta SET value = 2 WHERE key = 'layout'");
    program.exec('PRAGMA user_version = 0');
    program.close();
    expect(() => open(file)).toThrow('layout 2');
    expect(() => open(file)).toThrow('layout 2');
  });
});

test('a log of any page size is decoded as SQLite decodes it', () => {
  for (const pageSize of [512, 4096, 65_536]) {
    const file = join(makeFolder(), 'any.db');
    const db = new DatabaseSync(file);
    db.exec(`PRAGMA page_size = ${pageSize}; PRAGMA journal_mode = WAL; CREATE TABLE t (x)`);
    for (let i = 0; i < 20; i += 1) db.exec('INSERT INTO t VALUES (zeroblob(3000))');
    const found = readWriteAheadLog(`${file}-wal`);
    const { log } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {};
    db.close();
    expect(found).toEqual({ recovered: log, unreachable: 0 });
  }
});
