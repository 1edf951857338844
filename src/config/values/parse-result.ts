/** What a human wrote, understood or not. The message never repeats what was written: that may be a secret. A suggestion may. */
export type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string; readonly suggestion: string | undefined };

export function misread(message: string, suggestion?: string): Reading<never> {
  return { ok: false, message, suggestion };
}
