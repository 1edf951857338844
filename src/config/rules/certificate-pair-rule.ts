import type { Checked } from './rule-finding.ts';
import { mistake } from './rule-finding.ts';
import type { Path } from '../load/mistakes.ts';

/** A certificate of ours is of no use without its key, nor a key without its certificate. */
export function* checkPair(
  path: Path,
  tls: { readonly cert?: string | undefined; readonly key?: string | undefined } | undefined,
): Generator<Checked> {
  if ((tls?.cert === undefined) === (tls?.key === undefined)) return;
  yield mistake([...path, tls?.cert === undefined ? 'key' : 'cert'], 'cert and key need each other');
}
