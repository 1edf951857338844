import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// A lint rule that is misspelt, or overridden by a later block, says nothing at all. So each rule that the
// architecture rests on is shown a file it must refuse, and a neighbour it must let pass.

const ROOT = join(import.meta.dirname, '../..');

interface Diagnostic {
  readonly code?: string;
  readonly filename: string;
}

const IMPORTS = 'eslint(no-restricted-imports)';
const GLOBALS = 'eslint(no-restricted-globals)';
const PROPERTIES = 'eslint(no-restricted-properties)';

/** File, source, and the rule that must refuse it; without a rule, nothing may complain. */
const CASES: readonly (readonly [file: string, source: string, rule?: string])[] = [
  // policy/ imports nothing from outside, at any depth, by any detour.
  ['src/policy/parent.ts', `export { x } from '../outside.ts';`, IMPORTS],
  ['src/policy/sibling-folder.ts', `export { x } from '../proxy/outside.ts';`, IMPORTS],
  ['src/policy/type-alone.ts', `export type { X } from '../proxy/outside.ts';`, IMPORTS],
  ['src/policy/dynamic.ts', `export const load = async (): Promise<unknown> => import('../outside.ts');`, IMPORTS],
  ['src/policy/detour.ts', `export { x } from '../outside.ts';`, IMPORTS],
  ['src/policy/builtin.ts', `export { readFileSync } from 'node:fs';`, IMPORTS],
  ['src/policy/bare-builtin.ts', `export { readFileSync } from 'fs';`, IMPORTS],
  ['src/policy/library.ts', `export { request } from 'undici';`, IMPORTS],
  ['src/policy/scoped-library.ts', `export { reply } from '@fastify/http-proxy';`, IMPORTS],
  ['src/policy/within.ts', `export { x } from './backoff/x.ts';`],
  ['src/policy/backoff/outside.ts', `export { x } from '../../outside.ts';`, IMPORTS],
  ['src/policy/backoff/detour.ts', `export { x } from '../../outside.ts';`, IMPORTS],
  ['src/policy/backoff/library.ts', `export { request } from 'undici';`, IMPORTS],
  ['src/policy/backoff/within.ts', `export { x } from '../within.ts';`],
  ['src/policy/backoff/neighbour.ts', `export { x } from '../hints/x.ts';`],
  ['src/policy/backoff/beside.ts', `export { x } from './within.ts';`],

  // Time and chance are arguments.
  ['src/policy/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/policy/new-date.ts', `export const now = (): unknown => new Date();`, GLOBALS],
  ['src/policy/hidden-date.ts', `export const now = (): number => globalThis.Date.now();`, GLOBALS],
  ['src/policy/performance.ts', `export const now = (): number => performance.now();`, GLOBALS],
  ['src/policy/timeout.ts', `export const wait = (f: () => void): unknown => setTimeout(f, 1);`, GLOBALS],
  ['src/policy/interval.ts', `export const wait = (f: () => void): unknown => setInterval(f, 1);`, GLOBALS],
  ['src/policy/immediate.ts', `export const wait = (f: () => void): unknown => setImmediate(f);`, GLOBALS],
  ['src/policy/microtask.ts', `export const wait = (f: () => void): void => queueMicrotask(f);`, GLOBALS],
  ['src/policy/process.ts', `export const seed = (): number => process.pid;`, GLOBALS],
  ['src/policy/crypto.ts', `export const seed = (): string => crypto.randomUUID();`, GLOBALS],
  ['src/policy/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/policy/random-taken.ts', `export const { random } = Math;`, PROPERTIES],
  ['src/policy/backoff/timeout.ts', `export const wait = (f: () => void): unknown => setTimeout(f, 1);`, GLOBALS],
  ['src/policy/backoff/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/sim/models/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/sim/run/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/state/memory.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/state/redis.ts', `export const now = (): number => Date.now();`],
  ['src/proxy/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/policy/arguments.ts', `export const later = (now: number, random: () => number): number => now + random();`],

  // policy <- exchange <- { state, proxy, sim, practice } <- app <- cli <- main.
  ['src/sim/models/sim.ts', `export { x } from '../run.ts';`, IMPORTS],
  ['src/sim/models/library.ts', `export { createServer } from 'node:http';`, IMPORTS],
  ['src/sim/models/policy.ts', `export { x } from '../../policy/x.ts';\nexport { y } from './y.ts';`],
  ['src/sim/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/sim/library.ts', `export { createServer } from 'node:http';`, IMPORTS],
  ['src/lab/date.ts', `export const now = (): number => Date.now();`, GLOBALS],
  ['src/lab/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/lab/aloha/config.ts', `export { x } from '../../config/x.ts';`, IMPORTS],
  ['src/lab/library.ts', `export { createServer } from 'node:http';`, IMPORTS],
  ['src/lab/aloha/sim.ts', `export { x } from '../../sim/x.ts';\nexport { y } from '../../policy/y.ts';`],
  ['src/sim/exchange.ts', `export { x } from '../exchange.ts';\nexport { y } from './models/y.ts';`],
  ['src/polled.ts', `export { x } from './driving/x.ts';`, IMPORTS],
  ['src/check.ts', `export { x } from './policy/x.ts';\nexport { y } from './script.ts';`],
  ['src/driving/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/driving/script.ts', `export { x } from '../policy/x.ts';\nexport { y } from '../script.ts';`],
  ['src/compile/running.ts', `export { x } from '../running/x.ts';`, IMPORTS],
  ['src/simulate/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/running/app.ts', `export { x } from '../app.ts';`, IMPORTS],
  ['src/running/known.ts', `export { x } from '../proxy/x.ts';\nexport { y } from '../compile/y.ts';`],
  ['src/proxy/running.ts', `export { x } from '../running/x.ts';`, IMPORTS],
  ['src/sim/compile.ts', `export { x } from '../compile/x.ts';`, IMPORTS],
  ['src/state/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/state/deep/proxy.ts', `export { x } from '../../proxy/x.ts';`, IMPORTS],
  ['src/state/policy.ts', `export { x } from '../policy/x.ts';`],
  ['src/proxy/admin.ts', `export { x } from '../admin/x.ts';`, IMPORTS],
  ['src/proxy/app.ts', `export { x } from '../app.ts';`, IMPORTS],
  ['src/proxy/detour.ts', `export { x } from '../app.ts';`, IMPORTS],
  ['src/proxy/known.ts', `export { x } from '../exchange.ts';\nexport { y } from '../state/y.ts';`],
  ['src/practice/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/practice/models.ts', `export { x } from '../sim/models/x.ts';`],
  ['src/observe/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/observe/exchange.ts', `export { x } from '../exchange.ts';`, IMPORTS],
  ['src/observe/policy.ts', `export { x } from '../policy/x.ts';`],
  ['src/admin/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/admin/known.ts', `export { x } from '../state/x.ts';\nexport { y } from '../observe/y.ts';`],
  ['src/admin/operations.ts', `export { x } from '../operations/x.ts';`, IMPORTS],
  ['src/operations/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/operations/known.ts', `export { x } from '../state/x.ts';\nexport { y } from '../admin/y.ts';`],
  ['src/config/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/config/known.ts', `export { x } from '../policy/x.ts';\nexport { y } from '../sim/models/y.ts';`],
  ['src/cluster/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/cluster/cli.ts', `export { x } from '../cli/x.ts';`, IMPORTS],
  ['src/cluster/app.ts', `export { x } from '../app.ts';\nexport { y } from '../state/y.ts';`],
  ['src/state/cluster.ts', `export { x } from '../cluster/x.ts';`, IMPORTS],
  ['src/cli/proxy.ts', `export { x } from '../proxy/x.ts';`, IMPORTS],
  ['src/cli/app.ts', `export { x } from '../app.ts';\nexport { y } from '../config/y.ts';`],
  ['src/cli/admin.ts', `export { x } from '../admin/server.ts';`, IMPORTS],
  ['src/cli/top/admin.ts', `export { x } from '../../admin/server.ts';`, IMPORTS],
  ['src/cli/top/page.ts', `export { x } from '../../admin/page/words.js';`],
  ['src/library/cli.ts', `export { x } from '../cli/x.ts';`, IMPORTS],
  ['src/library/cluster.ts', `export { x } from '../cluster/x.ts';`, IMPORTS],
  ['src/library/app.ts', `export { x } from '../app.ts';\nexport { y } from '../policy/y.ts';`],
  ['src/library/random.ts', `export const chance = (): number => Math.random();`, PROPERTIES],
  ['src/admin/page/library.js', `export { x } from 'uplot';`, IMPORTS],
  ['src/admin/page/above.js', `export { x } from '../server.ts';`, IMPORTS],
  ['src/admin/page/beside.js', `export { x } from './words.js';`],
  ['src/admin/page/random.js', `export const chance = () => Math.random();`, PROPERTIES],
  ['src/proxy/cli.ts', `export { x } from '../cli/x.ts';`, IMPORTS],
  ['src/app.ts', `export { x } from './main.ts';`, IMPORTS],
  ['src/main.ts', `export { x } from './cli/x.ts';\nexport const seed = Math.random();`],
  ['src/proxy/hen.ts', `export { egg } from './egg.ts';\nexport const hen = 1;`, 'import(no-cycle)'],
  ['src/proxy/egg.ts', `export { hen } from './hen.ts';\nexport const egg = 1;`, 'import(no-cycle)'],

  // Mistakes that only types show, and manners.
  [
    'src/proxy/floating.ts',
    `export const go = (): void => {\n  Promise.resolve(1);\n};`,
    'typescript(no-floating-promises)',
  ],
  [
    'src/proxy/forgotten.ts',
    `export const say = (v: 'a' | 'b'): string => {\n  switch (v) {\n    case 'a':\n      return v;\n  }\n  return 'x';\n};`,
    'typescript(switch-exhaustiveness-check)',
  ],
  ['src/proxy/any.ts', `export const x = (v: any): unknown => v;`, 'typescript(no-explicit-any)'],
  ['src/proxy/sure.ts', `export const x = (v?: number): number => v!;`, 'typescript(no-non-null-assertion)'],
  ['src/proxy/default.ts', `export default 1;`, 'import(no-default-export)'],
  ['src/proxy/exit.ts', `export const end = (): never => process.exit(1);`, 'unicorn(no-process-exit)'],
  ['src/cli/exit.ts', `export const end = (): never => process.exit(1);`, 'unicorn(no-process-exit)'],
  ['src/proxy/console.ts', `console.log('x');\nexport {};`, 'eslint(no-console)'],
  ['src/proxy/Named.ts', `export {};`, 'unicorn(filename-case)'],
  [
    'src/proxy/type-import.ts',
    `import { X } from './x.ts';\nexport type Y = X;`,
    'typescript(consistent-type-imports)',
  ],
  ['src/proxy/long.ts', `export const x = [\n${'  0,\n'.repeat(250)}];`, 'eslint(max-lines)'],
  ['test/unit/only.test.ts', `import { test } from 'vitest';\ntest.only('x', () => {});`, 'vitest(no-focused-tests)'],
  ['test/unit/skip.test.ts', `import { test } from 'vitest';\ntest.skip('x', () => {});`, 'vitest(no-disabled-tests)'],
  ['test/unit/any.test.ts', `export const x = (v: any): unknown => v;`, 'typescript(no-explicit-any)'],
];

/** exchange.ts is one file, so its cases take turns. */
const EXCHANGE: readonly (readonly [specifier: string, refused: boolean])[] = [
  ['./app.ts', true],
  ['./proxy/x.ts', true],
  ['./policy/../app.ts', true],
  ['../outside.ts', true],
  ['undici', true],
  ['node:fs', true],
  ['./policy/gate.ts', false],
  ['./policy/backoff/full-jitter.ts', false],
];

describe('the linter', () => {
  let tree: string;
  let found: ReadonlyMap<string, readonly string[]>;

  beforeAll(async () => {
    tree = await mkdtemp(join(tmpdir(), 'lint-rules-'));
    await cp(join(ROOT, '.oxlintrc.json'), join(tree, '.oxlintrc.json'));
    await cp(join(ROOT, 'tsconfig.json'), join(tree, 'tsconfig.json'));
    await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    const exchange = EXCHANGE.map(([specifier], at) => `export { x as x${at} } from '${specifier}';\n`).join('');
    for (const [file, source] of [...CASES, ['src/exchange.ts', exchange] as const]) {
      await mkdir(join(tree, dirname(file)), { recursive: true });
      await writeFile(join(tree, file), `${source}\n`);
    }
    found = byFile(await lint(tree));
  }, 60_000);

  afterAll(async () => rm(tree, { recursive: true, force: true }));

  for (const [file, source, rule] of CASES) {
    const told = source.length > 70 ? file : `${file}: ${source.replaceAll('\n', ' ')}`;
    if (rule === undefined) {
      test(`lets pass ${told}`, () => expect(found.get(file) ?? []).toEqual([]));
    } else {
      test(`refuses by ${rule} ${told}`, () => expect(found.get(file)).toContain(rule));
    }
  }

  test('lets exchange.ts import policy/ alone', () => {
    const refused = EXCHANGE.filter(([, bad]) => bad);
    expect(found.get('src/exchange.ts')).toEqual(refused.map(() => IMPORTS));
  });
});

describe('the linter’s config', () => {
  test('has a rule of imports for every folder of src/', async () => {
    const config = await readFile(join(ROOT, '.oxlintrc.json'), 'utf8');
    const entries = await readdir(join(ROOT, 'src'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => `src/${entry.name}/**`);
    expect(folders.filter((folder) => !config.includes(`"files": ["${folder}"]`))).toEqual([]);
  });

  test('is switched off nowhere without a reason', async () => {
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
        // Exit code 1 is what we came for; anything that is no report is not.
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
