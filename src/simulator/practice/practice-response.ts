/** An answer of the practice server, whole. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn, without the length. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

const JSON_TYPE = ['Content-Type', 'application/json'] as const;

export function jsonAnswer(status: number, value: unknown, headers: readonly string[] = []): Answer {
  return { status, headers: [...JSON_TYPE, ...headers], body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

export function textAnswer(status: number, text: string): Answer {
  return { status, headers: ['Content-Type', 'text/plain; charset=utf-8'], body: Buffer.from(text) };
}

/** An error as payment APIs tell it. */
export function errorAnswer(status: number, type: string, message: string, code?: string): Answer {
  return jsonAnswer(status, { error: { type, code, message } });
}

/** An answer's headers with its length, as a body of so many bytes needs them; a 204 or 304 has none. */
export function framed(status: number, headers: readonly string[], length: number): string[] {
  return isBodiless(status) ? [...headers] : [...headers, 'Content-Length', String(length)];
}

export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}
