import type { Paint } from './terminal-style.ts';
import { fit, lengthOf } from './terminal-style.ts';

export interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  /** Right unless it is text. */
  readonly align?: 'left';
  /** Letters at most. */
  readonly most?: number;
  readonly paint?: (row: T, text: string) => string;
}

const GAP = '  ';

/** A line for the titles, and one a row. Columns for which there is no room are left out, the last first. */
export function drawTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number,
  paint: Paint,
): readonly string[] {
  const drawn: { readonly column: Column<T>; readonly cells: readonly string[]; readonly width: number }[] = [];
  let used = 0;
  for (const column of columns) {
    const cells = rows.map((row) => fit(column.text(row), column.most ?? 24));
    const needed = Math.max(...[column.title, ...cells].map(lengthOf));
    const room = used === 0 ? 0 : GAP.length;
    if (used > 0 && used + room + needed > width) break;
    used += room + needed;
    drawn.push({ column, cells, width: needed });
  }
  const line = (write: (part: (typeof drawn)[number]) => string): string => drawn.map(write).join(GAP).trimEnd();
  const heading = line(({ column, width: wide }) => pad(column, fit(column.title, wide), wide));
  return [
    paint.quiet(fit(heading, width)),
    ...rows.map((row, index) =>
      line(({ column, cells, width: wide }) => {
        const padded = pad(column, cells[index] ?? '', wide);
        return column.paint === undefined ? padded : column.paint(row, padded);
      }),
    ),
  ];
}

function pad<T>({ align }: Column<T>, text: string, width: number): string {
  const fill = ' '.repeat(Math.max(0, width - lengthOf(text)));
  return align === 'left' ? `${text}${fill}` : `${fill}${text}`;
}
