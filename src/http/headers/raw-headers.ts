/** The first value of a header; undefined where it is not there. @param headers names and values in turn @param name in lower case */
export function firstValue(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name) return headers[i + 1];
  }
  return undefined;
}

/** Whether a header says `true`. */
function hasTrue(headers: readonly string[], name: string): boolean {
  return firstValue(headers, name)?.trim().toLowerCase() === 'true';
}

/** `Tidegate-Outcome: unknown`, of another Tidegate. Asked of each answer to a write, of which nearly none has it. */
function hasUnknownOutcome(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === OUTCOME.length && name.toLowerCase() === OUTCOME) return headers[i + 1]?.trim() === 'unknown';
  }
  return false;
}

const OUTCOME = 'tidegate-outcome';

/** What an answer says of the write that it answers. @param replayedHeader by which the upstream marks a stored one, in lower case */
export function marksIn(
  headers: readonly string[],
  replayedHeader: string | undefined,
): { readonly isReplayed: boolean; readonly isUnknown: boolean } {
  const isReplayed = replayedHeader !== undefined && hasTrue(headers, replayedHeader);
  return { isReplayed, isUnknown: hasUnknownOutcome(headers) };
}

/** The headers but for those of one name. @param name in lower case */
export function without(headers: readonly string[], name: string): string[] {
  return headers.filter((_, i) => headers[i - (i % 2)]?.toLowerCase() !== name);
}
