/** The result of parsing a written value. The message never repeats the value, which may be a secret; the suggestion may. */
export type ParseResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string; readonly suggestion: string | undefined };

export function parseFailure(message: string, suggestion?: string): ParseResult<never> {
  return { ok: false, message, suggestion };
}
