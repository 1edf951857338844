import type { Finding, Path } from '../load/mistakes.ts';

/** A finding about what has to fit together. */
export type Checked = Finding & { readonly level: 'mistake' | 'warning' };

/** Whether a path was written, not filled in by a default: nobody is told that a default does not fit another default. */
export type Written = (path: Path) => boolean;

export function mistake(path: Path, message: string, suggestion?: string): Checked {
  return { level: 'mistake', path, at: 'value', message, suggestion };
}

export function warning(path: Path, message: string, at: 'key' | 'value' = 'value'): Checked {
  return { level: 'warning', path, at, message };
}
