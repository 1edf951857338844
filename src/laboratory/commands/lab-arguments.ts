/** The arguments of `tidegate lab`. */
import { suggest } from '../../config/values/suggest.ts';
import { STRATEGY_OPTIONS } from '../../cli/backoff/backoff-arguments.ts';
import type { OptionSpecs, UsageError } from '../../cli/cli-parse.ts';
import { parseSeed, parseOptions, BOOLEAN_OPTION, STRING_OPTION, usageError } from '../../cli/cli-parse.ts';
import type { StudyName, StudySpec } from './study-parser.ts';
import { STUDY_NAMES, StudyParser } from './study-parser.ts';

export interface LabCommand {
  readonly kind: 'lab';
  readonly study: StudySpec;
  readonly seed: number;
  readonly json: boolean;
  readonly svg: string | undefined;
}

const COMMON_OPTIONS: OptionSpecs = {
  help: { ...BOOLEAN_OPTION, short: 'h' },
  seed: STRING_OPTION,
  json: BOOLEAN_OPTION,
  svg: STRING_OPTION,
};
const STUDY_OPTIONS: Readonly<Record<StudyName, OptionSpecs>> = {
  contention: { ...STRATEGY_OPTIONS, n: STRING_OPTION, trials: STRING_OPTION },
  aloha: { ...STRATEGY_OPTIONS, n: STRING_OPTION, k: STRING_OPTION, load: STRING_OPTION, slots: STRING_OPTION },
  ethernet: { n: STRING_OPTION, frame: STRING_OPTION, load: STRING_OPTION, seconds: STRING_OPTION },
  'thundering-herd': {
    ...STRATEGY_OPTIONS,
    n: STRING_OPTION,
    limit: STRING_OPTION,
    burst: STRING_OPTION,
    trials: STRING_OPTION,
  },
  fit: { limit: STRING_OPTION, burst: STRING_OPTION },
};

type Help = { readonly kind: 'help'; readonly topic: 'lab' };

/** @param argv behind `lab` */
export function parseLabCommand(argv: readonly string[]): LabCommand | Help | UsageError {
  const [first = '', ...others] = argv;
  if (first === '' || first === '--help' || first === '-h') return { kind: 'help', topic: 'lab' };
  const name = STUDY_NAMES.find((study) => study === first);
  if (name === undefined) {
    return usageError(`the lab has no '${first}'`, suggest(first, STUDY_NAMES) ?? STUDY_NAMES.join(', '));
  }
  const options = parseOptions(others, { ...COMMON_OPTIONS, ...STUDY_OPTIONS[name] });
  if ('kind' in options) return options;
  if (options.has('help')) return { kind: 'help', topic: 'lab' };
  const seed = parseSeed(options);
  if (typeof seed === 'object') return seed;
  const study = new StudyParser(options).parse(name);
  if ('kind' in study) return study;
  const svg = options.value('svg');
  if (svg === '') return usageError('--svg needs a FILE');
  return { kind: 'lab', study, seed: seed ?? 1, json: options.has('json'), svg };
}
