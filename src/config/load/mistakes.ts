/** The path of a value in the configuration, from its root. */
export type Path = readonly (string | number)[];

/** A position in a file, counted from 1; or a flag or variable by its name, without line and column. */
export interface SourcePosition {
  readonly file: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
}

/** An error or a warning in the configuration, with its position. Never contains a substituted value. */
export interface Mistake extends SourcePosition {
  /** Such as `routes[0].upstream`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  readonly suggestion: string | undefined;
}

/** A mistake before its position is known. */
export interface Finding {
  readonly path: Path;
  /** Whether the key or its value is wrong. */
  readonly at: 'key' | 'value';
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** One line each: `tidegate.yaml:12:7 upstreams.payments.retry.atempts: unknown key (did you mean attempts?)`. */
export function formatMistakes(mistakes: readonly Mistake[]): string {
  // Two items of one flag may have the same message.
  return [...new Set(mistakes.map((mistake) => formatMistake(mistake)))].join('\n');
}

/** As `formatMistakes`, with "warning:" before each path. */
export function formatWarnings(warnings: readonly Mistake[]): string {
  return warnings.map((warning) => formatMistake(warning, 'warning: ')).join('\n');
}

function formatMistake({ file, line, column, path, message, suggestion }: Mistake, label = ''): string {
  const text = suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`;
  if (line === undefined) return `${file}: ${label}${text}`;
  return `${file}:${line}:${column} ${label}${path === '' ? '' : `${path}: `}${text}`;
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

export function comparePositions(a: SourcePosition, b: SourcePosition): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
