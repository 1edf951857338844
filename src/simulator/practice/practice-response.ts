/** A complete response of the practice server. */
export interface PracticeResponse {
  readonly status: number;
  /** Names and values alternating, without Content-Length. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

const JSON_TYPE = ['Content-Type', 'application/json'] as const;

export function jsonResponse(status: number, value: unknown, headers: readonly string[] = []): PracticeResponse {
  return { status, headers: [...JSON_TYPE, ...headers], body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

export function textResponse(status: number, text: string): PracticeResponse {
  return { status, headers: ['Content-Type', 'text/plain; charset=utf-8'], body: Buffer.from(text) };
}

/** An error in the form of payment APIs. */
export function errorResponse(status: number, type: string, message: string, code?: string): PracticeResponse {
  return jsonResponse(status, { error: { type, code, message } });
}

/** The headers of a response with its Content-Length; a 204 or 304 has none. */
export function withContentLength(status: number, headers: readonly string[], length: number): string[] {
  return isBodiless(status) ? [...headers] : [...headers, 'Content-Length', String(length)];
}

export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}
