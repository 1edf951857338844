/** A file that is replaced while it is in use. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WatchedFile } from '../../../src/http/auth/watched-file.ts';
import { atEnd } from '../../support/at-end.ts';

function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-watched-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file');
  writeFileSync(path, 'first');
  const state = { now: 0 };
  const problems: (string | undefined)[] = [];
  const onChange = (problem: string | undefined): void => void problems.push(problem);
  const file = new WatchedFile(path, (text) => text, { clock: { now: () => state.now }, onChange });
  const valueLater = (): string => {
    state.now += 1000;
    return file.value;
  };
  return { path, problems, valueLater };
}

test('keeps the previous contents while its path leads nowhere', () => {
  const { path, problems, valueLater } = setUp();
  renameSync(path, `${path}.old`);
  symlinkSync(path, path); // a loop: its metadata cannot be read either
  expect(valueLater()).toBe('first');
  expect(problems).toEqual([expect.stringContaining('ELOOP')]);
  expect(valueLater()).toBe('first');
  expect(problems).toHaveLength(1);
  rmSync(path);
  writeFileSync(path, 'second');
  expect(valueLater()).toBe('second');
  expect(problems).toEqual([expect.any(String), undefined]);
});
