import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
let folder: string;

/** The two files side by side, as scripts/build.ts places them. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidegate-entrance-'));
  cpSync(join(ROOT, 'scripts/build/entrance'), folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'program.js'), `console.log('started with ' + process.argv.slice(2));\n`);
  writeFileSync(join(folder, 'late.js'), `console.log('too late');\nexport {};\n`);
  writeFileSync(join(folder, 'library.js'), `import './check-node.js';\nimport './late.js';\n`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs in a Node that reports this version. */
function run(file: string, version: string): readonly [status: number | null, stdout: string, stderr: string] {
  const preload = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, join(folder, file), '--version'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return [status, stdout, stderr];
}

test.each(['22.21.0', '22.22.1', '24.9.0', '24.21.0', '25.0.0', '26.1.0-nightly2027'])('accepts %s', (version) => {
  expect(run('main.js', version)).toEqual([0, 'started with --version\n', '']);
  expect(run('library.js', version)).toEqual([0, 'too late\n', '']);
});

test.each(['12.22.12', '20.20.2', '22.20.9', '23.11.0', '24.8.0'])(
  'rejects %s with the required version',
  (version) => {
    const message = `tidegate needs Node 22.21, or 24.9 and later: this is v${version}`;
    expect(run('main.js', version)).toEqual([2, '', `${message}\n`]);
    const [status, stdout, stderr] = run('library.js', version);
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`\nError: ${message}\n`);
  },
);

test('requires the same version in the package manifest', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
  expect(manifest.engines.node).toBe('>=22.21 <23 || >=24.9');
});
