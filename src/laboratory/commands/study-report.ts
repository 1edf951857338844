/** What a study came to, for whoever asked. */
export interface Told {
  /** Lines, each ended by a newline. */
  readonly text: string;
  /** For `--json`: one object. */
  readonly json: object;
  /** For `--svg`. */
  readonly draw: () => string;
  /** Nothing has come of it yet. */
  readonly isEmpty?: boolean;
  /** Lines for standard error, without a newline. */
  readonly remarks?: readonly string[];
}
