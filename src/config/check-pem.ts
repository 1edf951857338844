import type { Checked } from './checked.ts';
import { mistake } from './checked.ts';
import type { Draft } from './draft.ts';
import type { Surroundings } from './substitute.ts';
import { explain } from './substitute.ts';

/** What every PEM text has before its first block (RFC 7468, section 2). */
const BEGIN = '-----BEGIN ';

/** Certificates and keys are PEM, or name a file that can be read and is PEM. Messages never repeat what stands there. */
export function* checkPem({ upstreams }: Draft, readFile: Surroundings['readFile']): Generator<Checked> {
  for (const [name, { tls }] of upstreams) {
    if (tls === undefined) continue;
    for (const part of ['ca', 'cert', 'key'] as const) {
      const problem = findProblem(tls[part], readFile);
      if (problem !== undefined) yield mistake(['upstreams', name, 'tls', part], problem);
    }
  }
}

function findProblem(value: string | undefined, readFile: Surroundings['readFile']): string | undefined {
  if (value === undefined || value.includes(BEGIN)) return undefined;
  try {
    return readFile(value).includes(BEGIN) ? undefined : `not a PEM file: there is no ${BEGIN.trim()} in it`;
  } catch (error) {
    return `cannot be read: ${explain(error)}`;
  }
}
