import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { Path } from '../load/mistakes.ts';

/** A certificate needs its key, and a key its certificate. */
export function* checkCertificatePair(
  path: Path,
  tls: { readonly cert?: string | undefined; readonly key?: string | undefined } | undefined,
): Generator<RuleFinding> {
  if ((tls?.cert === undefined) === (tls?.key === undefined)) return;
  yield mistakeAt([...path, tls?.cert === undefined ? 'key' : 'cert'], 'cert and key are needed together');
}
