import type {
  IConfigMap,
  IContainer,
  IPersistentVolumeClaim,
  IPodSpec,
  ISecret,
  IService,
  IServiceAccount,
} from 'kubernetes-models/v1';
import type { IDeployment, IStatefulSet } from 'kubernetes-models/apps/v1';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';
import type {
  IPodMonitor,
  IPrometheusRule,
  IServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import type { KubernetesObject } from './render.ts';

interface Kinds {
  readonly ConfigMap: IConfigMap;
  readonly Deployment: IDeployment;
  readonly HorizontalPodAutoscaler: IHorizontalPodAutoscaler;
  readonly NetworkPolicy: INetworkPolicy;
  readonly PersistentVolumeClaim: IPersistentVolumeClaim;
  readonly PodDisruptionBudget: IPodDisruptionBudget;
  readonly PodMonitor: IPodMonitor;
  readonly PrometheusRule: IPrometheusRule;
  readonly Secret: ISecret;
  readonly Service: IService;
  readonly ServiceAccount: IServiceAccount;
  readonly ServiceMonitor: IServiceMonitor;
  readonly StatefulSet: IStatefulSet;
}

/** Returns the objects of a kind. `checkTypes` validates their types. */
export function all<K extends keyof Kinds>(objects: readonly KubernetesObject[], kind: K): Kinds[K][] {
  return objects.filter((object) => object.kind === kind) as KubernetesObject[] & Kinds[K][];
}

/** Returns the object of this name; fails if there is none. */
export function one<K extends keyof Kinds>(objects: readonly KubernetesObject[], kind: K, name: string): Kinds[K] {
  const found = all(objects, kind).find(({ metadata }) => metadata?.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** What runs pods. */
export type Workload = IDeployment | IStatefulSet;

/** Returns all Deployments and StatefulSets. */
export function workloadsOf(objects: readonly KubernetesObject[]): Workload[] {
  return [...all(objects, 'Deployment'), ...all(objects, 'StatefulSet')];
}

/** Returns the spec of its pods. */
export function podOf({ spec }: Workload): IPodSpec {
  const pod = spec?.template.spec;
  if (pod === undefined) throw new Error('a workload without pods');
  return pod;
}

/** Labels of its pods. */
export function labelsOf({ spec }: Workload): Readonly<Record<string, string>> {
  return spec?.template.metadata?.labels ?? {};
}

export function containersOf({ containers, initContainers = [] }: IPodSpec): IContainer[] {
  return [...initContainers, ...containers];
}

/** Returns the container of Tidegate. */
export function tidegateIn(pod: IPodSpec): IContainer {
  const found = containersOf(pod).find(({ name }) => name === 'tidegate');
  if (found === undefined) throw new Error('no Tidegate runs here');
  return found;
}

/** Reads files from a container's mounted volumes. Throws like `readFileSync`. */
export function readMounted(
  objects: readonly KubernetesObject[],
  { volumes = [] }: IPodSpec,
  { volumeMounts = [] }: IContainer,
): (path: string) => string {
  return (path) => {
    const mount = volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
    const volume = volumes.find(({ name }) => name === mount?.name);
    const key = path.slice(`${mount?.mountPath}/`.length);
    const content = volume?.configMap
      ? one(objects, 'ConfigMap', volume.configMap.name ?? '').data?.[key]
      : decode(one(objects, 'Secret', volume?.secret?.secretName ?? '').data?.[key]);
    if (content === undefined) throw new Error(`${path}: no such file`);
    return content;
  };
}

function decode(base64: string | undefined): string | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString();
}

/** Converts a quantity such as 768Mi to bytes. */
export function bytes(quantity: string | number | undefined): number {
  const [, number, unit = ''] = /^(\d+)([KMG]i)?$/.exec(String(quantity)) ?? [];
  if (number === undefined) throw new Error(`no number of bytes: ${quantity}`);
  return Number(number) * 1024 ** ['', 'Ki', 'Mi', 'Gi'].indexOf(unit);
}
