/** Label values of `code_class`, by `statusClassIndex`. */
export const CODE_CLASSES = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** The first digit of a status in 100–599; 0 for anything else. */
export function statusClassIndex(status: number): number {
  return status >= 100 && status < 600 ? Math.floor(status / 100) : 0;
}

/** The label value of a status: at most 501 of them. */
export function statusLabel(status: number): string {
  return statusClassIndex(status) === 0 ? 'other' : String(status);
}
