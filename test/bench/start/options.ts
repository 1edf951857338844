import { parseArgs } from 'node:util';

export interface StartBenchOptions {
  /** Starts of each kind. */
  readonly runs: number;
  /** Seconds until memory is measured. */
  readonly idle: number;
  readonly requests: number;
  /** One start of each kind without goals, to check that everything works. */
  readonly smoke: boolean;
  /** Files to write to. */
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  /** The date of the run, for the files; omitted if absent. */
  readonly date: string | undefined;
}

export const USAGE = `npm run bench:start -- [options]

  --runs N          starts of each kind (10)
  --idle SECONDS    until memory is looked at (3)
  --smoke           one start of each kind: does it all work?
  --json FILE       every figure
  --markdown FILE   the table, between <!-- start:begin --> and <!-- start:end -->
  --date TEXT       said in the table

Ends with 1 when a goal is missed. Builds dist first where src is newer.`;

/** @throws Error that explains an invalid argument */
export function parseOptions(args: readonly string[]): StartBenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string' },
      idle: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      json: { type: 'string' },
      markdown: { type: 'string' },
      date: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { smoke, json, markdown, date } = values;
  if (values.help) return 'help';
  return {
    runs: Math.floor(readNumber('--runs', values.runs ?? (smoke ? '1' : '10'), 1)),
    idle: readNumber('--idle', values.idle ?? (smoke ? '0.1' : '3'), 0),
    requests: smoke ? 20 : 1000,
    smoke,
    json,
    markdown,
    date,
  };
}

function readNumber(flag: string, text: string, least: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= least && value < Number.POSITIVE_INFINITY)) {
    throw new Error(`${flag} ${text}: expected a number of at least ${least}`);
  }
  return value;
}
