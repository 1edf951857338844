/** Packs the package and installs it into an empty folder, as users do. */
import type { ChildProcessWithoutNullStreams, SpawnSyncReturns } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { atEnd } from '../at-end.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Files of the checkout that `npm pack` reads. */
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
  /** Bytes of the tarball, and of its content. */
  readonly size: number;
  readonly unpackedSize: number;
}

export interface InstalledPackage {
  /** The folder, with nothing but the files that npm created. */
  readonly folder: string;
  readonly packed: Packed;
  /** The packed copy of the checkout. */
  readonly checkout: string;
  /** Runs a program to its end in the folder. */
  run(program: string, args: readonly string[], input?: string): SpawnSyncReturns<string>;
  /** Starts a program in the folder. It is killed with its children when the test ends. */
  start(program: string, args: readonly string[]): ChildProcessWithoutNullStreams;
  /** Links a package of the checkout into the folder, as a dependency of the user's program. */
  have(name: string): void;
  write(file: string, text: string): void;
  remove(): void;
}

/** Packs a copy, because other tests read the checkout, and installs the package without a network. */
export function installPackage(): InstalledPackage {
  const place = mkdtempSync(join(tmpdir(), 'tidegate-package-'));
  const checkout = join(place, 'checkout');
  const folder = join(place, 'empty');
  mkdirSync(folder);
  mkdirSync(checkout);
  // One process copies faster than cpSync.
  succeed(spawnSync('cp', ['-R', ...CHECKOUT, checkout], { cwd: ROOT, encoding: 'utf8' }));
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  // No user settings, cache or registry. Uses the npm of this Node, because PATH may find another.
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
      atEnd(() => {
        // Kills the process group, so that the program started by npx ends too.
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
  if (report === undefined) throw new Error('npm pack reported no package');
  const { filename, size, unpackedSize, files } = report;
  return { tarball: join(place, filename), size, unpackedSize, files: files.map(({ path }) => path) };
}
