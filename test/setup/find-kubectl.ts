import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';

/** Where `fetchKubectl` puts it. */
export const FETCHED = join(import.meta.dirname, '../../node_modules/.cache/tidegate/kubectl-1.35');

/** The oldest version with all fields in use. Debian's is 1.20. */
const LEAST_MINOR = 30;

/** Returns a recent kubectl with kustomize; undefined if there is none. */
export function findKubectl(): string | undefined {
  return [findProgram('kubectl'), FETCHED].find((kubectl) => minorOf(kubectl) >= LEAST_MINOR);
}

/** Returns the minor version; NaN if it is unknown. */
function minorOf(kubectl: string | undefined): number {
  if (kubectl === undefined) return Number.NaN;
  try {
    const output = execFileSync(kubectl, ['version', '--client'], { stdio: ['ignore', 'pipe', 'ignore'] });
    return Number(/Client Version: v1\.(\d+)\./.exec(output.toString())?.[1]);
  } catch {
    return Number.NaN;
  }
}
