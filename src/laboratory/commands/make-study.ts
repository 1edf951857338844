import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import type { Experiment } from '../experiment.ts';
import type { StudySpec } from './study-parser.ts';
import { studyChannel, studyThroughput } from './aloha-study.ts';
import { studyLamChain } from './lam-chain-study.ts';
import { studyContention } from './contention-study.ts';
import { studyFit } from './fit-study.ts';
import { studyEthernet } from './ethernet-study.ts';
import { studyHerd } from './thundering-herd-study.ts';
import type { StudyReport } from './study-report.ts';

/**
 * Creates the study of a command.
 * @throws RangeError if options are invalid, StudyError if a file cannot be used or it would never end
 */
export function makeStudy(spec: StudySpec, seed: number, environment: ConfigEnvironment): Experiment<StudyReport> {
  switch (spec.study) {
    case 'contention':
      return studyContention(spec, seed);
    case 'throughput':
      return studyThroughput(spec, seed);
    case 'chain': {
      const report = studyLamChain(spec);
      return { progress: 1, step: () => undefined, result: () => report };
    }
    case 'channel':
      return studyChannel(spec, seed);
    case 'ethernet':
      return studyEthernet(spec, seed);
    case 'thundering-herd':
      return studyHerd(spec, seed);
    case 'fit':
      return studyFit(spec, seed, environment);
  }
}
