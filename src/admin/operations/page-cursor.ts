/** Where a page of several lists ended, in a form that nobody need understand. */

/** How far each station has been read. */
export interface Cursor<T> {
  readonly at: number;
  readonly read: ReadonlyMap<number, T>;
}

export function writeCursor<T>({ at, read }: Cursor<T>): string {
  return Buffer.from(JSON.stringify([at, ...read])).toString('base64url');
}

/** Undefined where it is none of ours. */
export function readCursor<T>(text: string, isPlace: (value: unknown) => value is T): Cursor<T> | undefined {
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
    const [station, place] = entry;
    if (typeof station !== 'number' || !isPlace(place)) return undefined;
    read.set(station, place);
  }
  return { at, read };
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
