/** The report of a study. */
export interface StudyReport {
  /** Text for standard output; each line ends with a newline. */
  readonly text: string;
  /** For `--json`: one object. */
  readonly json: object;
  /** For `--svg`. */
  readonly draw: () => string;
  /** True if there is no result yet. */
  readonly isEmpty?: boolean;
  /** Lines for standard error, without a newline. */
  readonly remarks?: readonly string[];
}
