import type { IContainer, IPodSpec } from 'kubernetes-models/v1';
import type { ConfigEnvironment } from '../../../src/config/load/substitute.ts';
import { makePem } from '../certificates.ts';
import { withPresets } from '../proxy/presets.ts';
import { one } from './objects.ts';
import type { KubernetesObject } from './render.ts';

/** Kubelet mounts it where `automountServiceAccountToken` is set. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Also one of Stripe's webhooks. */
const SECRET = 'whsec_0123456789abcdef0123456789abcdef';
const PEM = makePem();

/** A Secret has no folders. */
const SECRET_KEY = /^[-._a-zA-Z0-9]+$/;

/** The content of Secrets in a pod whose Secrets nobody has created: what Tidegate accepts in a file of this name. */
function secretContent(path: string): string {
  if (path.endsWith('.keys')) return '';
  if (path.endsWith('redis-url')) return 'rediss://redis.example.com:6379';
  return /\.(?:pem|crt|key)$/.test(path) ? PEM : SECRET;
}

/**
 * The variables and files of Tidegate's container. Throws for a path that is in no volume of it, as reading would fail in the pod.
 */
export function podEnvironment(
  objects: readonly KubernetesObject[],
  { volumes = [], automountServiceAccountToken }: IPodSpec,
  { env = [], volumeMounts = [] }: IContainer,
): ConfigEnvironment {
  const readFile = (path: string): string => {
    if (automountServiceAccountToken === true && path.startsWith(`${SERVICE_ACCOUNT}/`)) return secretContent(path);
    const mount = volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
    const volume = volumes.find(({ name }) => name === mount?.name);
    if (mount === undefined || volume === undefined) throw new Error(`${path} is in no volume`);
    const key = path.slice(mount.mountPath.length + 1);
    if (volume.secret !== undefined && SECRET_KEY.test(key)) return secretContent(path);
    const content = one(objects, 'ConfigMap', volume.configMap?.name ?? '').data?.[key];
    if (content === undefined) throw new Error(`${path}: no such file`);
    return content;
  };
  return {
    env: Object.fromEntries(env.map(({ name, value = SECRET }) => [name, value])),
    readFile: withPresets(readFile),
  };
}
