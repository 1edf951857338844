import { trimSpace } from '../../core/http-semantics/list-field.ts';

/** The first value of a header; undefined if it is absent. @param headers names and values in turn @param name in lower case */
export function firstHeaderValue(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name) return headers[i + 1];
  }
  return undefined;
}

/** Whether the value of a header is `true`. */
function isHeaderTrue(headers: readonly string[], name: string): boolean {
  return trimSpace(firstHeaderValue(headers, name) ?? '').toLowerCase() === 'true';
}

/** `Tidegate-Outcome: unknown` of another Tidegate. Checked for each response to a write, of which nearly none has it. */
function hasUnknownOutcome(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === OUTCOME_HEADER.length && name.toLowerCase() === OUTCOME_HEADER) {
      return trimSpace(headers[i + 1] ?? '') === 'unknown';
    }
  }
  return false;
}

const OUTCOME_HEADER = 'tidegate-outcome';

/** What a response says about its write. @param replayedHeader header that marks a stored response, in lower case */
export function outcomeMarks(
  headers: readonly string[],
  replayedHeader: string | undefined,
): { readonly isReplayed: boolean; readonly isUnknown: boolean } {
  const isReplayed = replayedHeader !== undefined && isHeaderTrue(headers, replayedHeader);
  return { isReplayed, isUnknown: hasUnknownOutcome(headers) };
}

/** The headers whose names satisfy a condition. @param isWanted gets the name in lower case */
export function filterHeaders(headers: readonly string[], isWanted: (name: string) => boolean): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (isWanted(name.toLowerCase())) out.push(name, headers[i + 1] ?? '');
  }
  return out;
}

/**
 * The fields of an HTTP/2 head or trailers: without pseudo-headers, and without the white space around values that RFC 9113 §8.2.1
 * forbids.
 */
export function http2Fields(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (!name.startsWith(':')) out.push(name, trimSpace(raw[i + 1] ?? ''));
  }
  return out;
}

/** The length of all names and values. */
export function headersLength(headers: readonly string[]): number {
  let length = 0;
  for (const text of headers) length += text.length;
  return length;
}

/** The headers without those of one name. @param name in lower case */
export function withoutHeader(headers: readonly string[], name: string): string[] {
  return filterHeaders(headers, (each) => each !== name);
}

/** Raw headers as undici and node:http2 deliver them: bytes as latin1, so that each survives; text as it is. */
export function decodeRawHeaders(raw: unknown): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((item: Buffer | string) => (typeof item === 'string' ? item : item.toString('latin1')));
}

/** A flat list of names and values, as pairs. */
export function toHeaderPairs(flat: readonly string[]): [string, string][] {
  const out: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) out.push([flat[i] ?? '', flat[i + 1] ?? '']);
  return out;
}
