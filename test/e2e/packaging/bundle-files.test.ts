import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { copyBundle } from '../../support/programs/bundle.ts';
import type { RunningProcess } from '../../support/proxy/process.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

// Compares the bundle files that each command loads with the modules it loads from source.

const { folder, modules } = copyBundle();
const DIST = join(folder, 'dist');
const SOURCE = fileURLToPath(new URL('../../../src', import.meta.url));

/** A module hook that appends the URL of every loaded file to the file LOADED. */
const HOOK = `
  import { appendFileSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) appendFileSync(process.env.LOADED, url + '\\n');
      return next(url, context);
    },
  });`;

interface Program {
  readonly script: string;
  readonly args: readonly string[];
}

type Use = (running: RunningProcess) => Promise<unknown>;

let runs = 0;

/** Runs the program to its end. @returns the files below `place` that were loaded */
async function loadedBelow(place: string, { script, args }: Program, use: Use): Promise<string[]> {
  runs += 1;
  const list = join(folder, `loaded-${runs}`);
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(HOOK)}`;
  const running = startProcess(args, { script, env: { LOADED: list, NODE_OPTIONS } });
  await use(running);
  const { stderr } = await running.ended;
  // Commands that query a proxy find none; there must be no other errors.
  expect(stderr.replace(/^tidegate: (no response from|the admin port at) .*\n/m, '')).toBe('');
  const urls = new Set(readFileSync(list, 'utf8').trim().split('\n'));
  rmSync(list);
  return Array.from(urls, (url) => relative(place, fileURLToPath(url))).filter((path) => !path.startsWith('.'));
}

interface Loads {
  /** Loaded files of the bundle. */
  readonly files: readonly string[];
  /** Modules in those files that the same program does not load from source. */
  readonly idle: readonly string[];
}

async function compare(bundled: Program, fromSource: Program, use: Use = ({ ended }) => ended): Promise<Loads> {
  const files = await loadedBelow(DIST, bundled, use);
  const needed = new Set(await loadedBelow(SOURCE, fromSource, use));
  const loaded = files.flatMap((file) => modules.get(file) ?? []);
  expect(loaded.length).toBeGreaterThan(0);
  return { files, idle: loaded.filter((path) => !needed.has(path)) };
}

function compareCommand(args: readonly string[], use?: Use): Promise<Loads> {
  return compare({ script: join(DIST, 'main.js'), args }, { script: join(SOURCE, 'main.ts'), args }, use);
}

const CONFIG = join(folder, 'some.yaml');
writeFileSync(
  CONFIG,
  `listen: 127.0.0.1:0
admin: 127.0.0.1:0
upstreams: {api: {url: "http://127.0.0.1:1"}}
state: {store: memory, file: ${join(folder, 'state.json')}}
`,
);
const NOBODY = '127.0.0.1:1';
/** With more than 80 files the start time exceeded its goal: docs/start.md. */
const MOST_FILES = 76;

test('every module is in exactly one bundle file', () => {
  const all = [...modules.values()].flat();
  expect(all.length).toBeGreaterThan(300);
  expect(new Set(all).size).toBe(all.length);
});

describe('a command loads only modules that it needs', () => {
  test.each([
    ['version', ['version']],
    ['help', ['help']],
    ['schema', ['schema']],
    ['check', ['check', CONFIG]],
    ['diff', ['diff', CONFIG, CONFIG]],
    ['simulate --list', ['simulate', '--list']],
    ['simulate', ['simulate', 'open']],
    ['backoff', ['backoff', 'full-jitter', '--svg', join(folder, 'drawn.svg')]],
    ['lab', ['lab']],
    ['explain', ['explain', 'x', '--admin', NOBODY]],
    ['deliveries', ['deliveries', 'list', '--admin', NOBODY]],
    ['top', ['top', '--once', '--admin', NOBODY]],
  ] as const)('%s', async (_, args) => {
    const { files, idle } = await compareCommand(args);
    expect(idle).toEqual([]);
    expect(files.length).toBeLessThan(MOST_FILES);
  });

  test.each([
    ['serve', ''],
    ['serve, with workers', 'workers: 2\n'],
  ])('%s', async (name, more) => {
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, readFileSync(CONFIG, 'utf8') + more);
    const { files, idle } = await compareCommand(['serve', '--config', file], async ({ child, log, ended }) => {
      await eventually(log, (seen) => seen.some(({ msg }) => msg === 'listening'));
      child.kill('SIGINT');
      await ended;
    });
    expect(idle).toEqual([]);
    expect(files.length).toBeLessThan(MOST_FILES);
  });

  test('demo', async () => {
    const args = ['demo', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
    const { idle } = await compareCommand(args, async ({ child, ended }) => {
      let seen = '';
      child.stdout.on('data', (text: string) => (seen += text));
      await eventually(
        () => seen,
        (text) => /^ +1 s /m.test(text),
      );
      child.kill('SIGINT');
      await ended;
    });
    expect(idle).toEqual([]);
  });
});

describe('a library loads only modules that it needs', () => {
  test.each([
    ['tidegate', 'index'],
    ['tidegate/policy', 'policy'],
  ])('%s', async (_, name) => {
    const imports = (path: string): Program => ({ script: '--eval', args: [`import(${JSON.stringify(path)})`] });
    const bundled = imports(join(DIST, `${name}.js`));
    const { files, idle } = await compare(bundled, imports(join(SOURCE, 'library', `${name}.ts`)));
    expect(idle).toEqual([]);
    expect(files.length).toBeLessThan(MOST_FILES);
  });
});
