import { AIMD } from './baselines/aimd.ts';
import { AWS_CUBIC } from './baselines/aws-cubic.ts';
import { BACKOFF } from './baselines/backoff.ts';
import { NETFLIX_AIMD, NETFLIX_VEGAS } from './baselines/netflix.ts';
import { NONE } from './baselines/none.ts';
import { SRE } from './baselines/sre.ts';
import type { Controller } from './controllers.ts';
import { ORACLE } from './oracle.ts';

/** Controllers for comparison. */
export const BASELINES: readonly Controller[] = [
  NONE,
  BACKOFF,
  AIMD,
  AWS_CUBIC,
  SRE,
  NETFLIX_AIMD,
  NETFLIX_VEGAS,
  ORACLE,
];
