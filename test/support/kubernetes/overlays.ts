import type { IContainer, IPodSpec } from 'kubernetes-models/v1';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { withPresets } from '../proxy/presets.ts';
import type { KubernetesObject } from './build.ts';
import { build } from './build.ts';
import { one, podOf, readMounted, tidegateIn } from './objects.ts';
import { makeSecrets } from './secrets.ts';

export interface Overlay {
  readonly name: string;
  readonly objects: readonly KubernetesObject[];
  /** Secrets created by the commands in its documentation. */
  readonly secrets: readonly KubernetesObject[];
  /** The Deployment whose pods contain Tidegate. */
  readonly deployment: string;
  readonly pod: IPodSpec;
  readonly tidegate: IContainer;
  /** The configuration that Tidegate reads in the pod. */
  readonly config: Config;
  /** The warnings that it would log at its start. */
  readonly warnings: string;
}

/** Reads all overlays of config/kubernetes. */
export function readOverlays(): readonly Overlay[] {
  return [read('gateway', 'tidegate'), read('sidecar', 'checkout'), read('ingress-helper', 'tidegate')];
}

function read(name: string, deployment: string): Overlay {
  const objects = build(name);
  const workload = one(objects, 'Deployment', deployment);
  const secrets = makeSecrets(workload.metadata?.namespace ?? '');
  const pod = podOf(workload);
  const tidegate = tidegateIn(pod);
  const readFile = withPresets(readMounted([...objects, ...secrets], pod, tidegate));
  const [command, flag, file = ''] = tidegate.args ?? [];
  if (command !== 'serve' || flag !== '--config') throw new Error(`${name}: no serve --config FILE`);
  const loaded = loadConfig(readFile(file), file, { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { config, warnings } = loaded;
  return { name, objects, secrets, deployment, pod, tidegate, config, warnings: formatWarnings(warnings) };
}
