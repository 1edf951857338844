import type { Checked, Written } from './rule-finding.ts';
import { mistake } from './rule-finding.ts';
import type { Path } from '../load/mistakes.ts';

const SERVER = 'not where the proxy is part of another program: the server is that program’s';
const LOG = 'not where the proxy is part of another program: the log is that program’s';

/** What a program that mounts the proxy has itself. */
const THEIRS: readonly (readonly [path: Path, why: string])[] = [
  [['listen'], SERVER],
  [['limits', 'headers'], SERVER],
  [['limits', 'connections'], SERVER],
  [['admin'], 'not where the proxy is part of another program: ask `onMounted` for metrics'],
  [['telemetry'], 'not where the proxy is part of another program: ask `onMounted` for metrics'],
  [['workers'], 'not where the proxy is part of another program: its processes are that program’s'],
  [['drain', 'delay'], 'not where the proxy is part of another program: that program says when it is not ready'],
  [['log', 'level'], LOG],
  [['log', 'buffer'], LOG],
];

/** Told plainly: a setting that is read and does nothing is a trap. */
export function* checkMounted(written: Written): Generator<Checked> {
  for (const [path, why] of THEIRS) if (written(path)) yield { ...mistake(path, why), at: 'key' };
}
