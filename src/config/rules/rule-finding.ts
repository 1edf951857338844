import type { Finding, Path } from '../load/mistakes.ts';

/** A finding of a rule across keys. */
export type RuleFinding = Finding & { readonly level: 'mistake' | 'warning' };

/** True for a path that is written, not filled in by a default: no warning is about two defaults. */
export type IsWritten = (path: Path) => boolean;

export function mistakeAt(path: Path, message: string, suggestion?: string): RuleFinding {
  return { level: 'mistake', path, at: 'value', message, suggestion };
}

export function warningAt(path: Path, message: string, at: 'key' | 'value' = 'value'): RuleFinding {
  return { level: 'warning', path, at, message };
}
