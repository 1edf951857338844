/** Opaque cursors: where a page over the lists of several processes ended. */

/** The position in the list of each process. */
export interface PageCursor<T> {
  readonly at: number;
  readonly read: ReadonlyMap<number, T>;
}

export function encodeCursor<T>({ at, read }: PageCursor<T>): string {
  return Buffer.from(JSON.stringify([at, ...read])).toString('base64url');
}

/** Undefined if the text is not a valid cursor. */
export function decodeCursor<T>(text: string, isPosition: (value: unknown) => value is T): PageCursor<T> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!isList(parsed)) return undefined;
  const [at, ...entries] = parsed;
  if (typeof at !== 'number') return undefined;
  const read = new Map<number, T>();
  for (const entry of entries) {
    if (!isList(entry)) return undefined;
    const [process, position] = entry;
    if (typeof process !== 'number' || !isPosition(position)) return undefined;
    read.set(process, position);
  }
  return { at, read };
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
