/** The package as its users have it: packed, and installed into a folder that has nothing else. */
import type { ChildProcessWithoutNullStreams, SpawnSyncReturns } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** What `npm pack` reads of the checkout. */
const CHECKOUT = [
  'package.json',
  'package-lock.json',
  '.npmrc',
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'tsconfig.json',
  'config',
  'scripts',
  'src',
];

export interface Packed {
  readonly tarball: string;
  /** Paths within the package. */
  readonly files: readonly string[];
  /** In bytes: of the tarball, and of what is in it. */
  readonly size: number;
  readonly unpackedSize: number;
}

export interface InstalledPackage {
  /** An empty folder but for what npm made. */
  readonly folder: string;
  readonly packed: Packed;
  /** Of the copy of the checkout that was packed. */
  readonly checkout: string;
  /** Runs a program to its end in the folder. */
  run(program: string, args: readonly string[], input?: string): SpawnSyncReturns<string>;
  /** Starts one in the folder; ended, with all that it has started, when the test ends. */
  start(program: string, args: readonly string[]): ChildProcessWithoutNullStreams;
  /** Gives the folder a package of the checkout, as a program that has it already. */
  have(name: string): void;
  write(file: string, text: string): void;
  remove(): void;
}

/** Packs a copy of the checkout, which others read meanwhile, and installs the package without a network. */
export function installPackage(): InstalledPackage {
  const place = mkdtempSync(join(tmpdir(), 'tidegate-package-'));
  const checkout = join(place, 'checkout');
  const folder = join(place, 'empty');
  mkdirSync(folder);
  for (const name of CHECKOUT) cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  // None of the user's settings, no cache, no registry. npm comes with Node; the PATH may name another one of both.
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: place,
    npm_config_cache: join(place, 'cache'),
    npm_config_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    TIDEGATE_CACHE: 'off',
  };
  const runIn = (cwd: string, program: string, args: readonly string[], input = ''): SpawnSyncReturns<string> =>
    spawnSync(program, args, { cwd, env, input, encoding: 'utf8' });
  const packed = readPacked(succeed(runIn(checkout, 'npm', ['pack', '--json', '--pack-destination', place])), place);
  succeed(runIn(folder, 'npm', ['install', packed.tarball]));
  return {
    folder,
    packed,
    checkout,
    run: (program, args, input) => runIn(folder, program, args, input),
    start(program, args) {
      const child = spawn(program, args, { cwd: folder, env, detached: true });
      onTestFinished(() => {
        // npx has started what it runs: they end together.
        if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
      });
      return child;
    },
    have(name) {
      const target = join(folder, 'node_modules', name);
      mkdirSync(dirname(target), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules', name), target);
    },
    write: (file, text) => writeFileSync(join(folder, file), text),
    remove: () => rmSync(place, { recursive: true, force: true }),
  };
}

function succeed({ status, stdout, stderr, error }: SpawnSyncReturns<string>): string {
  if (status !== 0) throw new Error(`${String(error ?? '')}${stdout}${stderr}`);
  return stdout;
}

function readPacked(stdout: string, place: string): Packed {
  const [report] = JSON.parse(stdout) as {
    readonly filename: string;
    readonly size: number;
    readonly unpackedSize: number;
    readonly files: readonly { readonly path: string }[];
  }[];
  if (report === undefined) throw new Error('npm pack told of no package');
  const { filename, size, unpackedSize, files } = report;
  return { tarball: join(place, filename), size, unpackedSize, files: files.map(({ path }) => path) };
}
