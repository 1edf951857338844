/** Label values of `code_class`, by `classOf`. */
export const CODE_CLASSES = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** The first digit of a status in 100–599; 0 for anything else. */
export function classOf(status: number): number {
  return status >= 100 && status < 600 ? Math.floor(status / 100) : 0;
}

/** The label value of a status: at most 501 of them. */
export function statusOrOther(status: number): string {
  return classOf(status) === 0 ? 'other' : String(status);
}
