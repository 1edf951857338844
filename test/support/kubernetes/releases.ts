import type { IContainer, IPodSpec } from 'kubernetes-models/v1';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { withPresets } from '../proxy/presets.ts';
import type { KubernetesObject } from './render.ts';
import { one, podOf, readMounted, tidegateIn } from './objects.ts';
import { patchCheckout, renderValueSet } from './render.ts';
import { makeSecrets } from './secrets.ts';

/** A release of the chart as docs/kubernetes.md describes it, in a namespace with its secrets. */
export interface ChartRelease {
  readonly name: 'gateway' | 'sidecar' | 'ingress-helper';
  /** Those of the chart. For sidecars, with the Deployment of an application to which the patch is applied. */
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

/** The namespace of each release in docs/kubernetes.md. */
const NAMESPACES = { gateway: 'tidegate', sidecar: 'checkout', 'ingress-helper': 'tidegate-check' };

export function readReleases(): readonly ChartRelease[] {
  return [readRelease('gateway'), readRelease('sidecar'), readRelease('ingress-helper')];
}

export function readRelease(name: ChartRelease['name']): ChartRelease {
  const namespace = NAMESPACES[name];
  const deployment = name === 'sidecar' ? 'checkout' : 'tidegate';
  const rendered = renderValueSet(name, namespace);
  const objects = name === 'sidecar' ? [...rendered, patchCheckout(patchOf(rendered))] : rendered;
  const secrets = makeSecrets(namespace);
  const pod = podOf(one(objects, 'Deployment', deployment));
  const tidegate = tidegateIn(pod);
  const readFile = withPresets(readMounted([...objects, ...secrets], pod, tidegate));
  const [command, flag, file = ''] = tidegate.args ?? [];
  if (command !== 'serve' || flag !== '--config') throw new Error(`${name}: no serve --config FILE`);
  const loaded = loadConfig(readFile(file), file, { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { config, warnings } = loaded;
  return { name, objects, secrets, deployment, pod, tidegate, config, warnings: formatWarnings(warnings) };
}

/** Returns the patch that adds Tidegate to the pods of an application. */
export function patchOf(objects: readonly KubernetesObject[], form: 'patch' | 'kustomize' = 'patch'): string {
  return one(objects, 'ConfigMap', 'tidegate-patch').data?.[`${form}.yaml`] ?? '';
}
