/** A database that is damaged while no process uses it, with the write-ahead log of a process that was killed or without one. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { StateDatabase } from '../../../src/store/sqlite/state-database.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const PAGE = 4096;
/** The first byte of a leaf of a table: https://sqlite.org/fileformat2.html#b_tree_pages */
const LEAF = 0x0d;

interface Files {
  readonly file: string;
  /** The number of the first page of a table. */
  readonly rootOf: (table: string) => number;
}

/** Returns a database with 400 writes. Its last commit is in the log alone, if it has one. */
function makeFiles(hasLog: boolean): Files {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-damaged-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [live, file] = ['live.db', 'state.db'].map((name) => join(folder, name)) as [string, string];
  const database = new StateDatabase({ file: live, durability: 'full' });
  const { db } = database;
  const insert = db.prepare("INSERT INTO writes VALUES (?, ?, 'api', 1, 1, '', 7, 'unresolved', 0, 'e1', '0', '0')");
  for (let id = 1; id <= 400; id += 1) insert.run(id, Buffer.alloc(50, id));
  db.exec("INSERT INTO worker_processes VALUES (2147483647, 'ended')");
  const roots = db.prepare('SELECT name, rootpage FROM sqlite_schema').all();
  db.exec('PRAGMA wal_checkpoint'); // the next commit begins the log anew
  database.writeLearned('{}');
  if (!hasLog) database.close();
  for (const suffix of hasLog ? ['', '-wal'] : ['']) copyFileSync(`${live}${suffix}`, `${file}${suffix}`);
  database.close();
  return { file, rootOf: (table) => Number(roots.find(({ name }) => name === table)?.['rootpage']) };
}

function overwrite(file: string, from: number, to: number, byte: number): void {
  writeFileSync(file, readFileSync(file).fill(byte, from, to));
}

function overwritePage(file: string, page: number): void {
  overwrite(file, (page - 1) * PAGE, page * PAGE, 0xab);
}

/** The number of the last page with rows of writes. */
function lastLeaf({ file, rootOf }: Files): number {
  const bytes = readFileSync(file);
  let page = bytes.length / PAGE;
  const others = ['worker_processes', 'learned', 'open_writes', 'responses'].map(rootOf);
  while (bytes[(page - 1) * PAGE] !== LEAF || others.includes(page)) page -= 1;
  return page;
}

function cut(file: string, pages: (all: number) => number): void {
  truncateSync(file, pages(readFileSync(file).length / PAGE) * PAGE);
}

const DAMAGES: readonly (readonly [string, (files: Files) => void])[] = [
  ['its head is overwritten', ({ file }) => overwrite(file, 0, 100, 0)],
  ['the first page of the writes is overwritten', ({ file, rootOf }) => overwritePage(file, rootOf('writes'))],
  ['a leaf of the writes is overwritten', (files) => overwritePage(files.file, lastLeaf(files))],
  ['the page of the workers is overwritten', ({ file, rootOf }) => overwritePage(file, rootOf('worker_processes'))],
  ['it is cut in half', ({ file }) => cut(file, (all) => Math.floor(all / 2))],
  ['its last page is missing', ({ file }) => cut(file, (all) => all - 1)],
];

const start = (file: string) =>
  startTidegate(`state: {store: sqlite, file: ${file}}\nupstreams: {api: {url: "http://127.0.0.1:1"}}`);

const messageOf = (file: string): string =>
  `state.file: ${file} is not a database, or is damaged; move it away to start without what it remembers, together with ${file}-wal`;

describe('a damaged database', () => {
  test.each(DAMAGES)(
    'ends each start with its name and a remedy, and stays as it is with its log, if %s',
    async (_, damage) => {
      const files = makeFiles(true);
      damage(files);
      const { file } = files;
      const read = (): readonly Buffer[] => [file, `${file}-wal`].map((each) => readFileSync(each));
      const before = read();
      for (let i = 0; i < 2; i += 1) await expect(start(file)).rejects.toThrow(messageOf(file));
      expect(read()).toEqual(before);
      expect(existsSync(`${file}-shm`)).toBe(false);
    },
  );

  test.each(DAMAGES)('ends the start with its name and a remedy if it has no log, and %s', async (_, damage) => {
    const files = makeFiles(false);
    damage(files);
    await expect(start(files.file)).rejects.toThrow(messageOf(files.file));
  });
});

test.each([true, false])('a database that is not damaged is restored: with a log %s', async (hasLog) => {
  const { file } = makeFiles(hasLog);
  const { log } = await start(file);
  expect(log().find(({ msg }) => msg === 'restored idempotency keys')).toMatchObject({ writes: 400 });
  expect(existsSync(`${file}-shm`)).toBe(false);
});
