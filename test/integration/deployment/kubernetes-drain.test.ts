/** A pod's termination grace period covers everything that happens within it: docs/drains.md. */
import { describe, expect, test } from 'vitest';
import { all, one, podOf } from '../../support/kubernetes/objects.ts';
import { readReleases } from '../../support/kubernetes/releases.ts';

/** The margin after the drain, as in src/main.ts, in seconds: then the process exits in any case. */
const LAST_LINES = 2;
/** How late kubelet may be on a busy node, in seconds. */
const SPARE = 5;
/** How long the application of config/helm/examples may take, in seconds. */
const APPLICATION = 30;

const releases = readReleases();

describe.each(releases)('a pod of the release $name', ({ name, pod, tidegate, config }) => {
  const { delay, timeout } = config.drain;
  const preStop = tidegate.lifecycle?.preStop?.sleep?.seconds ?? 0;

  test('has a termination grace period longer than its drain', () => {
    const before = name === 'sidecar' ? APPLICATION : 0;
    const needed = before + preStop + delay / 1000 + timeout / 1000 + LAST_LINES;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed + SPARE);
  });

  test('keeps serving until its clients have noticed the drain', () => {
    if (name === 'sidecar') {
      // Its only client has stopped before it gets the signal.
      expect({ preStop, delay }).toEqual({ preStop: 0, delay: 0 });
      return;
    }
    expect(preStop).toBeGreaterThanOrEqual(5);
    expect(delay / 1000).toBeGreaterThanOrEqual(5);
  });

  test('has time for the longest request that a client may wait for', () => {
    for (const [upstream, { timeout: longest, queue }] of Object.entries(config.upstreams)) {
      // A check is queued, and answered.
      const held = name === 'ingress-helper' ? queue.maxWait : longest;
      expect(timeout, upstream).toBeGreaterThanOrEqual(held);
    }
  });
});

describe('nodes can be drained', () => {
  test.each(releases.filter(({ name }) => name !== 'sidecar'))('of pods of $name, one at a time', ({ objects }) => {
    const { spec: budget } = one(objects, 'PodDisruptionBudget', 'tidegate');
    expect(budget).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect(budget?.minAvailable).toBeUndefined();
    // At least one replica more than the disruption budget removes.
    expect(one(objects, 'HorizontalPodAutoscaler', 'tidegate').spec?.minReplicas).toBeGreaterThan(1);
  });

  test('of Redis, which has nothing to drain and never runs twice', () => {
    const [{ objects } = { objects: [] }] = releases;
    // A StatefulSet starts a pod of a name only after the one before it has ended.
    const redis = one(objects, 'StatefulSet', 'tidegate-redis');
    expect(redis.spec?.replicas).toBe(1);
    expect(podOf(redis).terminationGracePeriodSeconds).toBeLessThanOrEqual(10);
    expect(all(objects, 'PodDisruptionBudget')).toHaveLength(1);
  });
});
