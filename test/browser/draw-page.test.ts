import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { atEnd } from '../support/at-end.ts';

/** The size of a picture: https://www.w3.org/TR/png-3/#11IHDR */
function sizeOf(png: Buffer): readonly [width: number, height: number] {
  return [png.readUInt32BE(16), png.readUInt32BE(20)];
}

test('draws the page in each of its views', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-page-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const program = join(import.meta.dirname, 'draw-page.ts');
  await promisify(execFile)(process.execPath, [program, '--out', folder, '--seconds', '0']);
  const sizes = ['dark', 'light', 'phone'].map((view) => sizeOf(readFileSync(join(folder, `page-${view}.png`))));
  expect(sizes).toEqual([
    [1100, 800],
    [1100, 800],
    [540, 1170],
  ]);
});
