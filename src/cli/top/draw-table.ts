import type { TerminalStyle } from './terminal-style.ts';
import { truncate, displayLength } from './terminal-style.ts';

export interface TableColumn<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  /** Default: right. */
  readonly align?: 'left';
  /** Maximum width in columns. */
  readonly maxWidth?: number;
  readonly paint?: (row: T, text: string) => string;
}

const GAP = '  ';
/** Ends the header if columns are omitted. */
const MORE = ' …';

interface DrawnColumn<T> {
  readonly column: TableColumn<T>;
  readonly cells: readonly string[];
  readonly width: number;
}

/** A header line and one line per row. Columns that do not fit are omitted, the last ones first. An ellipsis shows that. */
export function drawTable<T>(
  columns: readonly TableColumn<T>[],
  rows: readonly T[],
  width: number,
  paint: TerminalStyle,
): readonly string[] {
  const all = fitColumns(columns, rows, width);
  const hasAll = all.length === columns.length;
  const drawn = hasAll ? all : fitColumns(columns, rows, width - displayLength(MORE));
  const line = (write: (part: DrawnColumn<T>) => string): string => drawn.map(write).join(GAP).trimEnd();
  const heading = line(({ column, width: wide }) => pad(column, truncate(column.title, wide), wide));
  return [
    paint.muted(truncate(hasAll ? heading : `${heading}${MORE}`, width)),
    ...rows.map((row, index) =>
      line(({ column, cells, width: wide }) => {
        const padded = pad(column, cells[index] ?? '', wide);
        return column.paint === undefined ? padded : column.paint(row, padded);
      }),
    ),
  ];
}

/** The first columns that fit, one at least. */
function fitColumns<T>(columns: readonly TableColumn<T>[], rows: readonly T[], width: number): DrawnColumn<T>[] {
  const drawn: DrawnColumn<T>[] = [];
  let used = 0;
  for (const column of columns) {
    const cells = rows.map((row) => truncate(column.text(row), column.maxWidth ?? 24));
    const needed = Math.max(...[column.title, ...cells].map(displayLength));
    const room = used === 0 ? 0 : GAP.length;
    if (used > 0 && used + room + needed > width) break;
    used += room + needed;
    drawn.push({ column, cells, width: needed });
  }
  return drawn;
}

function pad<T>({ align }: TableColumn<T>, text: string, width: number): string {
  const fill = ' '.repeat(Math.max(0, width - displayLength(text)));
  return align === 'left' ? `${text}${fill}` : `${fill}${text}`;
}
