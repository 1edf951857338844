/** Where something stands in the configuration, from its root. */
export type Path = readonly (string | number)[];

/** A point in a file, counted from 1; or a flag or variable by its name, without line and column. */
export interface Place {
  readonly file: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
}

/** Something wrong with the configuration, and where. Never carries a value that was substituted. */
export interface Mistake extends Place {
  /** Such as `routes[0].upstream`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  readonly suggestion: string | undefined;
}

/** A mistake before it is known where it stands. */
export interface Finding {
  readonly path: Path;
  /** What is at fault: the key, or what it holds. */
  readonly at: 'key' | 'value';
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** A line each: `tidegate.yaml:12:7 upstreams.payments.retry.atempts: unknown key (did you mean attempts?)`. */
export function formatMistakes(mistakes: readonly Mistake[]): string {
  // Two items of one flag may be wrong in the same way.
  return [...new Set(mistakes.map((mistake) => formatMistake(mistake)))].join('\n');
}

/** As `formatMistakes`, with "warning:" before each path. */
export function formatWarnings(warnings: readonly Mistake[]): string {
  return warnings.map((warning) => formatMistake(warning, 'warning: ')).join('\n');
}

function formatMistake({ file, line, column, path, message, suggestion }: Mistake, label = ''): string {
  const told = suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`;
  if (line === undefined) return `${file}: ${label}${told}`;
  return `${file}:${line}:${column} ${label}${path === '' ? '' : `${path}: `}${told}`;
}

/** `upstreams.payments.url`, `routes[0].path`, `clients.classes["a b"]`. */
export function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (!/^[\w-]+$/.test(step)) text += `[${JSON.stringify(step)}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

export function comparePlaces(a: Place, b: Place): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
