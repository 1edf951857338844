/** Formats a table: the first column left-aligned, the others right-aligned. Lines without a newline. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((cell, i) => Math.max(cell.length, ...rows.map((row) => row[i]?.length ?? 0)));
  return [head, ...rows].map((row) =>
    `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')}`.trimEnd(),
  );
}

/** Lines as text. */
export function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** A bar proportional to its part of the whole. */
export function formatBar(part: number, width: number): string {
  const columns = Math.round(Math.min(1, Math.max(0, part)) * width);
  return columns === 0 && part > 0 ? '▏' : '█'.repeat(columns);
}

/** "1 user", "2 users". */
export function pluralize(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
