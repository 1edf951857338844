import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LAYERS } from '../../../scripts/layers.ts';

// A lint rule that is misspelt, or overridden by a later block, reports nothing at all. So each rule that the
// architecture relies on is given a file it must reject, and a similar one it must accept.

const ROOT = join(import.meta.dirname, '../../..');

interface Diagnostic {
  readonly code?: string;
  readonly filename: string;
}

const IMPORTS = 'eslint(no-restricted-imports)';
const GLOBALS = 'eslint(no-restricted-globals)';
const PROPERTIES = 'eslint(no-restricted-properties)';

/** File, source, and the rule that must reject it; without a rule, no rule may report it. */
const CASES: readonly (readonly [file: string, source: string, rule?: string])[] = [
  // core/ imports nothing from outside, at any depth, by any path.
  ['src/core/parent.ts', `export { x } from '../outside/../app.ts';`, IMPORTS],
  ['src/core/sibling-folder.ts', `export { x } from '../http/outside.ts';`, IMPORTS],
  ['src/core/type-alone.ts', `export type { X } from '../http/outside.ts';`, IMPORTS],
  ['src/core/dynamic.ts', `export const load = async (): Promise<unknown> => import('../app.ts');`, IMPORTS],
  ['src/core/detour.ts', `export { x } from './../app.ts';`, IMPORTS],
  ['src/core/builtin.ts', `export { readFileSync } from 'node:fs';`, IMPORTS],
  ['src/core/bare-builtin.ts', `export { readFileSync } from 'fs';`, IMPORTS],
  ['src/core/library.ts', `export { request } from 'undici';`, IMPORTS],
  ['src/core/scoped-library.ts', `export { reply } from '@fastify/http-proxy';`, IMPORTS],
  ['src/core/within.ts', `export { x } from './backoff/x.ts';`],
  ['src/core/backoff/outside.ts', `export { x } from '../../http/outside.ts';`, IMPORTS],
  ['src/core/backoff/library.ts', `export { request } from 'undici';`, IMPORTS],
  ['src/core/backoff/within.ts', `export { x } from '../within.ts';`],
  ['src/core/backoff/neighbour.ts', `export { x } from '../hints/x.ts';`],
  ['src/core/backoff/beside.ts', `export { x } from './within.ts';`],
  ['src/store/fastify.ts', `export { x } from 'fastify';`, IMPORTS],
  ['src/sharing/undici.ts', `export { x } from 'undici';`, IMPORTS],
  ['src/cli/server.ts', `export { x } from '../admin/admin-server.ts';`, IMPORTS],
  ['src/cli/top/server.ts', `export { x } from '../../admin/admin-server.ts';`, IMPORTS],
  ['src/cli/top/page.ts', `export { x } from '../../admin/page/text/labels.js';`],
  ['src/admin/page/library.js', `export { x } from 'uplot';`, IMPORTS],
  ['src/admin/page/above.js', `export { x } from '../admin-server.ts';`, IMPORTS],
  ['src/admin/page/beside.js', `export { x } from './beside-it.js';`],
  ['src/admin/page/text/library.js', `export { x } from 'uplot';`, IMPORTS],
  ['src/admin/page/text/above.js', `export { x } from '../../admin-server.ts';`, IMPORTS],
  ['src/admin/page/text/within.js', `export { x } from '../beside-it.js';`],
  ['src/http/hen.ts', `export { egg } from './egg.ts';\nexport const hen = 1;`, 'import(no-cycle)'],
  ['src/http/egg.ts', `export { hen } from './hen.ts';\nexport const egg = 1;`, 'import(no-cycle)'],

  // Time and randomness are arguments.
  ['src/core/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/core/new-date.ts', `export const now = (): unknown => new Date();`, GLOBALS],
  ['src/core/hidden-date.ts', `export const now = (): number => globalThis.Date.now();`, GLOBALS],
  ['src/core/performance.ts', `export const now = (): number => performance.now();`, GLOBALS],
  ['src/core/timeout.ts', `export const wait = (f: () => void): unknown => setTimeout(f, 1);`, GLOBALS],
  ['src/core/interval.ts', `export const wait = (f: () => void): unknown => setInterval(f, 1);`, GLOBALS],
  ['src/core/immediate.ts', `export const wait = (f: () => void): unknown => setImmediate(f);`, GLOBALS],
  ['src/core/microtask.ts', `export const wait = (f: () => void): void => queueMicrotask(f);`, GLOBALS],
  ['src/core/process.ts', `export const seed = (): number => process.pid;`, GLOBALS],
  ['src/core/crypto.ts', `export const seed = (): string => crypto.randomUUID();`, GLOBALS],
  ['src/core/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/core/random-taken.ts', `export const { random } = Math;`, PROPERTIES],
  ['src/core/arguments.ts', `export const later = (now: number, random: () => number): number => now + random();`],
  ['src/core/backoff/timeout.ts', `export const wait = (f: () => void): unknown => setTimeout(f, 1);`, GLOBALS],
  ['src/core/backoff/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/simulator/limit-models/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/simulator/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/simulator/practice/date.ts', `export const now = (): number => Date.now();`],
  ['src/laboratory/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/laboratory/aloha/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/laboratory/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/store/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/store/clients/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/store/persistence/date.ts', `export const now = (): number => Date.now();`],
  ['src/sharing/workers/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/sharing/redis/date.ts', `export const now = (): number => Date.now();`],
  ['src/http/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/library/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/admin/page/random.js', `export const chance = () => Math.random();`, PROPERTIES],
  ['src/main.ts', `export const seed = Math.random();`],

  // Errors that need type information, and style.
  [
    'src/http/floating.ts',
    `export const go = (): void => {\n  Promise.resolve(1);\n};`,
    'typescript(no-floating-promises)',
  ],
  [
    'src/http/forgotten.ts',
    `export const say = (v: 'a' | 'b'): string => {\n  switch (v) {\n    case 'a':\n      return v;\n  }\n  return 'x';\n};`,
    'typescript(switch-exhaustiveness-check)',
  ],
  ['src/http/any.ts', `export const x = (v: any): unknown => v;`, 'typescript(no-explicit-any)'],
  ['src/http/sure.ts', `export const x = (v?: number): number => v!;`, 'typescript(no-non-null-assertion)'],
  ['src/http/default.ts', `export default 1;`, 'import(no-default-export)'],
  ['src/http/exit.ts', `export const end = (): never => process.exit(1);`, 'unicorn(no-process-exit)'],
  ['src/cli/exit.ts', `export const end = (): never => process.exit(1);`, 'unicorn(no-process-exit)'],
  ['src/http/console.ts', `console.log('x');\nexport {};`, 'eslint(no-console)'],
  ['src/http/Named.ts', `export {};`, 'unicorn(filename-case)'],
  ['src/http/type-import.ts', `import { X } from './x.ts';\nexport type Y = X;`, 'typescript(consistent-type-imports)'],
  ['src/http/long.ts', `export const x = [\n${'  0,\n'.repeat(250)}];`, 'eslint(max-lines)'],
  ['test/unit/only.test.ts', `import { test } from 'vitest';\ntest.only('x', () => {});`, 'vitest(no-focused-tests)'],
  ['test/unit/skip.test.ts', `import { test } from 'vitest';\ntest.skip('x', () => {});`, 'vitest(no-disabled-tests)'],
  ['test/unit/any.test.ts', `export const x = (v: any): unknown => v;`, 'typescript(no-explicit-any)'],
];

const isFile = (name: string): boolean => ['app', 'installation', 'main'].includes(name);
const ENTRIES = new Set(LAYERS.flatMap(({ name, imports }) => [name.split('/')[0] ?? '', ...imports]));

/** Each layer imports each entry of src/ once. */
const LAYER_CASES: readonly (readonly [file: string, source: string, isRefused: boolean])[] = LAYERS.flatMap(
  (layer) => {
    const [home = ''] = layer.name.split('/');
    const depth = layer.name.split('/').length;
    return [...ENTRIES].flatMap((entry): (readonly [string, string, boolean])[] => {
      if (entry === home || isFile(layer.name)) return [];
      const target = isFile(entry) ? `${entry}.ts` : `${entry}/${entry === 'admin' ? 'page/' : ''}x.ts`;
      const source = `export { x } from '${'../'.repeat(depth)}${target}';`;
      return [[`src/${layer.name}/imports-${entry}.ts`, source, !layer.imports.includes(entry)]];
    });
  },
);

describe('the linter', () => {
  let tree: string;
  let found: ReadonlyMap<string, readonly string[]>;

  beforeAll(async () => {
    tree = await mkdtemp(join(tmpdir(), 'lint-rules-'));
    for (const file of ['oxlint.config.ts', 'scripts/layers.ts']) await cp(join(ROOT, file), join(tree, file));
    await cp(join(ROOT, 'tsconfig.json'), join(tree, 'tsconfig.json'));
    await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    for (const [file, source] of [...CASES, ...LAYER_CASES]) {
      await mkdir(join(tree, dirname(file)), { recursive: true });
      await writeFile(join(tree, file), `${source}\n`);
    }
    found = byFile(await lint(tree));
  }, 60_000);

  afterAll(async () => rm(tree, { recursive: true, force: true }));

  for (const [file, source, rule] of CASES) {
    const label = source.length > 70 ? file : `${file}: ${source.replaceAll('\n', ' ')}`;
    if (rule === undefined) {
      test(`accepts ${label}`, () => expect(found.get(file) ?? []).toEqual([]));
    } else {
      test(`rejects by ${rule} ${label}`, () => expect(found.get(file)).toContain(rule));
    }
  }

  test.each(LAYER_CASES)('checks %s: %s', (file, _, isRefused) => {
    expect(found.get(file)?.includes(IMPORTS) ?? false).toBe(isRefused);
  });
});

describe('the linter’s config', () => {
  test('has an import rule for every folder of src/', async () => {
    const entries = await readdir(join(ROOT, 'src'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect(folders.filter((folder) => !LAYERS.some(({ name }) => name === folder))).toEqual([]);
  });

  test('matches the table in docs/architecture.md', async () => {
    const page = await readFile(join(ROOT, 'docs/architecture.md'), 'utf8');
    const rows = LAYERS.map(({ name, imports }) => {
      const list = imports.map((each) => `\`${each}\``).join(', ');
      return `| \`${name}\` | ${list === '' ? 'nothing' : list} |`;
    });
    expect(page).toContain(['| --- | --- |', ...rows, ''].join('\n'));
  });

  test('names only folders that are imported', async () => {
    const imported = new Map<string, Set<string>>();
    for (const file of await readdir(join(ROOT, 'src'), { recursive: true })) {
      if (!/\.[jt]s$/.test(file)) continue;
      const layer = LAYERS.findLast(({ name }) => file === `${name}.ts` || file.startsWith(`${name}/`));
      const source = await readFile(join(ROOT, 'src', file), 'utf8');
      for (const [, specifier] of source.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
        const target = join(dirname(file), specifier ?? '');
        const entry = target.split('/')[0]?.replace(/\.ts$/, '') ?? '';
        const known = imported.get(layer?.name ?? '') ?? new Set();
        imported.set(layer?.name ?? '', known.add(entry));
      }
    }
    const unused = LAYERS.flatMap(({ name, imports }) =>
      imports.filter((entry) => imported.get(name)?.has(entry) !== true).map((entry) => `${name}: ${entry}`),
    );
    expect(unused).toEqual([]);
  });

  test('is disabled nowhere without a reason', async () => {
    const unexplained: string[] = [];
    for (const folder of ['src', 'test', 'scripts']) {
      const files = await readdir(join(ROOT, folder), { recursive: true });
      for (const file of files.filter((name) => /\.[cm]?[jt]s$/.test(name))) {
        const source = await readFile(join(ROOT, folder, file), 'utf8');
        for (const [directive] of source.matchAll(/(?:\/\/|\/\*) *(?:ox|es)lint-disable.*/g)) {
          if (!/ -- \S/.test(directive)) unexplained.push(`${folder}/${file}: ${directive}`);
        }
      }
    }
    expect(unexplained).toEqual([]);
  });
});

function lint(tree: string): Promise<readonly Diagnostic[]> {
  const program = join(ROOT, 'node_modules/oxlint/bin/oxlint');
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [program, '-f', 'json', 'src', 'test'],
      { cwd: tree, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        // Exit code 1 is expected with a report; output without a report is an error.
        try {
          resolve((JSON.parse(stdout) as { diagnostics: readonly Diagnostic[] }).diagnostics);
        } catch {
          reject(new Error(`oxlint gave no report: ${(stderr + stdout).slice(0, 2000)}`, { cause: error }));
        }
      },
    );
  });
}

function byFile(diagnostics: readonly Diagnostic[]): ReadonlyMap<string, readonly string[]> {
  const rules = new Map<string, string[]>();
  for (const { filename, code } of diagnostics) rules.set(filename, [...(rules.get(filename) ?? []), code ?? 'none']);
  return rules;
}
