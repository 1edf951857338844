/** `npm run lua -- --check`: whether limit.lua is what the sources generate. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
const SCRIPT = join(ROOT, 'src/sharing/redis/scripts/limit.lua');
/** Tests download nothing. */
const OFFLINE = { ...process.env, npm_config_offline: 'true' };

interface Result {
  readonly code: number | null;
  readonly output: string;
}

function check(path: string): Result {
  const args = [join(ROOT, 'scripts/lua/main.ts'), '--check', '--out', path];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, env: OFFLINE, encoding: 'utf8' });
  return { code: status, output: stdout + stderr };
}

/** A copy of the script with one change. */
function changed(pattern: RegExp, by: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-lua-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'limit.lua');
  writeFileSync(path, readFileSync(SCRIPT, 'utf8').replace(pattern, by));
  return path;
}

test('reports a script from other sources as outdated, and does not change it', () => {
  const path = changed(/(?<=^-- SHA-256 of the sources: ).*$/m, '0'.repeat(64));
  const before = readFileSync(path, 'utf8');
  const { code, output } = check(path);
  expect(output).toContain('limit.lua is out of date: run npm run lua');
  expect(code).toBe(1);
  expect(readFileSync(path, 'utf8')).toBe(before);
});

test('reports a missing script as outdated', () => {
  expect(check(join(tmpdir(), 'tidegate-none/limit.lua'))).toMatchObject({ code: 1 });
});

test('finds limit.lua as the sources generate it', () => {
  expect(check(SCRIPT)).toEqual({ code: 0, output: 'src/sharing/redis/scripts/limit.lua is up to date\n' });
});

test('reports a manually edited script as outdated', () => {
  expect(check(changed(/^local VERSION = /m, 'local VERSION= '))).toMatchObject({ code: 1 });
});
