import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { buildBundle } from '../support/bundle.ts';
import type { Running } from '../support/process.ts';
import { startProcess } from '../support/process.ts';
import { eventually } from '../support/tidegate.ts';

// Which files of the bundle are loaded for what, beside the modules that the same loads from source.

const { folder, modules } = buildBundle();
const DIST = join(folder, 'dist');
const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
const PATIENCE = 20_000;

/** Writes down each file that is loaded, by whatever process. */
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

type Use = (running: Running) => Promise<unknown>;

let runs = 0;

/** Runs it to its end. @returns the files below this folder that were loaded */
async function loadedBelow(place: string, { script, args }: Program, use: Use): Promise<string[]> {
  runs += 1;
  const list = join(folder, `loaded-${runs}`);
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(HOOK)}`;
  const running = startProcess(args, { script, env: { TIDEGATE_CACHE: 'off', LOADED: list, NODE_OPTIONS } });
  await use(running);
  const { stderr } = await running.ended;
  // Whoever asks a proxy finds none; nothing else goes wrong.
  expect(stderr.replace(/^tidegate: (no answer from|the admin port at) .*\n/m, '')).toBe('');
  const urls = new Set(readFileSync(list, 'utf8').trim().split('\n'));
  rmSync(list);
  return Array.from(urls, (url) => relative(place, fileURLToPath(url))).filter((path) => !path.startsWith('.'));
}

interface Loads {
  /** Of the bundle. */
  readonly files: readonly string[];
  /** Modules in them that are not loaded from source. */
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
/** With more than eighty a start missed its goals: docs/start.md. */
const MOST_FILES = 70;

test('no module is in two of them, nor left out', () => {
  const all = [...modules.values()].flat();
  expect(all.length).toBeGreaterThan(300);
  expect(new Set(all).size).toBe(all.length);
});

describe('no command loads what others need', () => {
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
      await eventually(log, (seen) => seen.some(({ msg }) => msg === 'listening'), PATIENCE);
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
        PATIENCE,
      );
      child.kill('SIGINT');
      await ended;
    });
    expect(idle).toEqual([]);
  });
});

describe('no library loads what others need', () => {
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
