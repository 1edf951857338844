import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';

/** Where `fetchKubectl` puts it. */
export const FETCHED = join(import.meta.dirname, '../../node_modules/.cache/tidegate/kubectl-1.35');

/** As old as the fields that we use. Debian's is 1.20. */
const LEAST_MINOR = 30;

/** Of today, with kustomize in it; undefined where there is none. */
export function findKubectl(): string | undefined {
  return [findProgram('kubectl'), FETCHED].find((kubectl) => minorOf(kubectl) >= LEAST_MINOR);
}

/** Not a number where it is none that we know. */
function minorOf(kubectl: string | undefined): number {
  if (kubectl === undefined) return Number.NaN;
  try {
    const told = execFileSync(kubectl, ['version', '--client'], { stdio: ['ignore', 'pipe', 'ignore'] });
    return Number(/Client Version: v1\.(\d+)\./.exec(told.toString())?.[1]);
  } catch {
    return Number.NaN;
  }
}
