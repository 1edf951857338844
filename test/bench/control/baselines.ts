import { AIMD } from './baselines/aimd.ts';
import { AWS_CUBIC } from './baselines/aws-cubic.ts';
import { BACKOFF } from './baselines/backoff.ts';
import { BBR } from './baselines/bbr.ts';
import { CINNAMON } from './baselines/cinnamon.ts';
import { ENVOY } from './baselines/envoy.ts';
import { FAILSAFE } from './baselines/failsafe.ts';
import { NETFLIX_GRADIENT2 } from './baselines/gradient2.ts';
import { NETFLIX_AIMD, NETFLIX_VEGAS } from './baselines/netflix.ts';
import { NONE } from './baselines/none.ts';
import { SRE } from './baselines/sre.ts';
import type { Controller } from './controllers.ts';
import { LATENCY, OURS } from './controllers.ts';
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

/** The controllers that are compared at services that queue: all but the first two learn from the latency. */
export const SERVICE_CONTROLLERS: readonly Controller[] = [
  NONE,
  OURS,
  LATENCY,
  NETFLIX_VEGAS,
  NETFLIX_GRADIENT2,
  ENVOY,
  BBR,
  CINNAMON,
  FAILSAFE,
  ORACLE,
];
