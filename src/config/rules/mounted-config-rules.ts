import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { Path } from '../load/mistakes.ts';

const HOST_SERVER = 'not allowed where the proxy is mounted in another program, which owns the server';
const HOST_LOG = 'not allowed where the proxy is mounted in another program, which owns the log';

/** Settings that belong to the program that mounts the proxy. */
const HOST_SETTINGS: readonly (readonly [path: Path, why: string])[] = [
  [['listen'], HOST_SERVER],
  [['clients', 'auth', 'certificate'], HOST_SERVER],
  [['check', 'grpc'], HOST_SERVER],
  [['limits', 'headers'], HOST_SERVER],
  [['limits', 'connections'], HOST_SERVER],
  [['admin'], 'not allowed where the proxy is mounted in another program: take metrics from `onMounted`'],
  [['telemetry'], 'not allowed where the proxy is mounted in another program: take metrics from `onMounted`'],
  [['workers'], 'not allowed where the proxy is mounted in another program, which owns the processes'],
  [['drain', 'delay'], 'not allowed where the proxy is mounted in another program, which reports its own readiness'],
  [['log', 'level'], HOST_LOG],
  [['log', 'format'], HOST_LOG],
  [['log', 'buffer'], HOST_LOG],
];

/** A mistake, not a warning: a setting without an effect would be a trap. */
export function* checkMountedConfig(isWritten: IsWritten): Generator<RuleFinding> {
  for (const [path, why] of HOST_SETTINGS) if (isWritten(path)) yield { ...mistakeAt(path, why), at: 'key' };
}
