import type { Surroundings } from '../../config/load/substitute.ts';
import type { Experiment } from '../experiment.ts';
import type { StudySpec } from './lab-arguments.ts';
import { studyChannel, studyThroughput } from './aloha-study.ts';
import { studyChain } from './lam-chain-study.ts';
import { studyContention } from './contention-study.ts';
import { studyFit } from './fit-study.ts';
import { studyEthernet } from './ethernet-study.ts';
import { studyHerd } from './thundering-herd-study.ts';
import type { Told } from './study-report.ts';

/** The study that was asked for, not begun yet. @throws RangeError where options do not fit, StudyError where a file cannot be used or it would never end */
export function makeStudy(spec: StudySpec, seed: number, surroundings: Surroundings): Experiment<Told> {
  switch (spec.study) {
    case 'contention':
      return studyContention(spec, seed);
    case 'throughput':
      return studyThroughput(spec, seed);
    case 'chain': {
      const told = studyChain(spec);
      return { progress: 1, step: () => undefined, result: () => told };
    }
    case 'channel':
      return studyChannel(spec, seed);
    case 'ethernet':
      return studyEthernet(spec, seed);
    case 'thundering-herd':
      return studyHerd(spec, seed);
    case 'fit':
      return studyFit(spec, seed, surroundings);
  }
}
