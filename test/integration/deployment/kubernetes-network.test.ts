/** Policies of config/helm allow the traffic that is needed, and no other. */
import { BlockList, isIPv6 } from 'node:net';
import type { INetworkPolicyPeer } from 'kubernetes-models/networking.k8s.io/v1';
import { describe, expect, test } from 'vitest';
import { upstreamOrigins } from '../../../src/config/schema/upstream-schema.ts';
import { all, labelsOf, one } from '../../support/kubernetes/objects.ts';
import type { ChartRelease } from '../../support/kubernetes/releases.ts';
import { readReleases } from '../../support/kubernetes/releases.ts';

const releases = readReleases();
const inCluster = releases.filter(({ name }) => name !== 'sidecar');
const gateway = releases.find(({ name }) => name === 'gateway');

const CLIENTS = 'namespace tidegate/client=true';
const PROMETHEUS = 'namespace kubernetes.io/metadata.name=monitoring, pod app.kubernetes.io/name=prometheus';
/** Those of the release with that component. */
const podsOf = (component: string): string =>
  `pod app.kubernetes.io/component=${component} app.kubernetes.io/instance=tidegate app.kubernetes.io/name=tidegate`;
const DNS = 'namespace kubernetes.io/metadata.name=kube-system, pod k8s-app=kube-dns';

describe.each(inCluster)('pods of the release $name', (release) => {
  test('accept connections from clients and Prometheus only', () => {
    expect(flowsOf(release, release.name, 'ingress')).toEqual([`${PROMETHEUS}: TCP telemetry`, `${CLIENTS}: TCP http`]);
  });

  test('may reach DNS, Redis, and upstreams where they send requests', () => {
    const own = [`${DNS}: TCP 53`, `${DNS}: UDP 53`, `${podsOf('redis')}: TCP redis`];
    const world = release.name === 'gateway' ? ['0.0.0.0/0: TCP 443', '::/0: TCP 443'] : [];
    expect(flowsOf(release, release.name, 'egress')).toEqual([...own, ...world].toSorted());
  });

  test('are the only ones that may reach Redis, which may reach nothing', () => {
    expect(flowsOf(release, 'redis', 'ingress')).toEqual([`${podsOf(release.name)}: TCP redis`]);
    expect(flowsOf(release, 'redis', 'egress')).toEqual([]);
  });

  test('find Redis at the configured address', () => {
    const { state } = release.config;
    if (state.store !== 'redis' || state.url.kind !== 'single') throw new Error('one Redis was expected');
    const [node] = state.url.nodes;
    const service = one(release.objects, 'Service', node?.host ?? '');
    expect(service.spec?.ports?.map(({ port }) => port)).toEqual([node?.port]);
    expect(service.spec?.selector).toEqual(labelsOf(one(release.objects, 'StatefulSet', 'tidegate-redis')));
  });
});

test('opens the port at which the gateway’s upstreams listen', () => {
  const origins = Object.values(gateway?.config.upstreams ?? {}).flatMap(upstreamOrigins);
  expect(origins.length).toBeGreaterThan(0);
  for (const origin of origins) expect(new URL(origin).protocol).toBe('https:');
  for (const origin of origins) expect(new URL(origin).port).toBe('');
});

test('excludes cluster and cloud metadata addresses from the public range', () => {
  const { spec } = one(gateway?.objects ?? [], 'NetworkPolicy', 'tidegate');
  const blocks = (spec?.egress ?? []).flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
  const isOpen = (address: string) =>
    blocks.some(({ cidr, except = [] }) => isWithin(address, [cidr]) && !isWithin(address, except));
  for (const address of ['198.51.100.7', '2001:db8::7']) expect(isOpen(address), address).toBe(true);
  for (const address of [
    '10.0.0.1',
    '172.20.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    'fd00:ec2::254',
    'fe80::1',
  ]) {
    expect(isOpen(address), address).toBe(false);
  }
});

/** The traffic allowed from or to pods of that component, by all policies together, a line each. */
function flowsOf({ objects }: ChartRelease, component: string, direction: 'ingress' | 'egress'): string[] {
  const policies = all(objects, 'NetworkPolicy').filter(
    ({ spec }) => spec?.podSelector?.matchLabels?.['app.kubernetes.io/component'] === component,
  );
  const type = direction === 'ingress' ? 'Ingress' : 'Egress';
  // A direction that no policy covers is open to all.
  expect(policies.some(({ spec }) => spec?.policyTypes?.includes(type))).toBe(true);
  return policies
    .flatMap(({ spec }) => {
      const rules = direction === 'ingress' ? spec?.ingress : spec?.egress;
      return (rules ?? []).flatMap((rule) => {
        const peers = ('from' in rule ? rule.from : 'to' in rule ? rule.to : undefined) ?? [];
        // A rule without peers or ports allows all of them.
        expect([peers.length, rule.ports?.length]).not.toContain(0);
        return peers.flatMap((peer) =>
          (rule.ports ?? []).map(({ protocol, port }) => `${describePeer(peer)}: ${protocol} ${port}`),
        );
      });
    })
    .toSorted();
}

function describePeer({ ipBlock, namespaceSelector, podSelector }: INetworkPolicyPeer): string {
  if (ipBlock) return ipBlock.cidr;
  const labels = (selector: typeof podSelector) =>
    Object.entries(selector?.matchLabels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(' ');
  return [
    ...(namespaceSelector ? [`namespace ${labels(namespaceSelector)}`] : []),
    ...(podSelector ? [`pod ${labels(podSelector)}`] : []),
  ].join(', ');
}

function isWithin(address: string, blocks: readonly string[]): boolean {
  const list = new BlockList();
  const family = (text: string) => (isIPv6(text) ? 'ipv6' : 'ipv4');
  for (const block of blocks) {
    const [network = '', bits] = block.split('/');
    // Node would match an IPv4 address in ::/0 as well.
    if (family(network) === family(address)) list.addSubnet(network, Number(bits), family(network));
  }
  return list.check(address, family(address));
}
