/** A pod has as long to end as what happens in that time takes: docs/drains.md. */
import { describe, expect, test } from 'vitest';
import { all, one, podOf } from '../support/kubernetes/objects.ts';
import { readOverlays } from '../support/kubernetes/overlays.ts';

/** Beyond the drain, as src/main.ts has it, in seconds: then the process ends in any case. */
const LAST_LINES = 2;
/** What kubelet may be late by, in seconds, on a node that has much to do. */
const SPARE = 5;
/** What the application of the sidecar's overlay may take, in seconds. */
const APPLICATION = 30;

const overlays = readOverlays();

describe.each(overlays)('a pod of the overlay $name', ({ name, pod, tidegate, config }) => {
  const { delay, timeout } = config.drain;
  const preStop = tidegate.lifecycle?.preStop?.sleep?.seconds ?? 0;

  test('is killed by nobody before it would have ended by itself', () => {
    const before = name === 'sidecar' ? APPLICATION : 0;
    const needed = before + preStop + delay / 1000 + timeout / 1000 + LAST_LINES;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed + SPARE);
  });

  test('serves on until those who send to it have noticed', () => {
    if (name === 'sidecar') {
      // Who sends to it has ended before it is told.
      expect({ preStop, delay }).toEqual({ preStop: 0, delay: 0 });
      return;
    }
    expect(preStop).toBeGreaterThanOrEqual(5);
    expect(delay / 1000).toBeGreaterThanOrEqual(5);
  });

  test('has time for the longest request that a client may wait for', () => {
    for (const [upstream, { timeout: longest, queue }] of Object.entries(config.upstreams)) {
      // A check waits for its turn, and is answered.
      const held = name === 'ingress-helper' ? queue.maxWait : longest;
      expect(timeout, upstream).toBeGreaterThanOrEqual(held);
    }
  });
});

describe('nodes may be emptied', () => {
  test.each(overlays.filter(({ name }) => name !== 'sidecar'))('of pods of $name, one at a time', ({ objects }) => {
    const { spec: budget } = one(objects, 'PodDisruptionBudget', 'tidegate');
    expect(budget).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect(budget?.minAvailable).toBeUndefined();
    // Those who share what is left have one more at least.
    expect(one(objects, 'HorizontalPodAutoscaler', 'tidegate').spec?.minReplicas).toBeGreaterThan(1);
  });

  test('of Redis, which has nothing to finish and is never there twice', () => {
    const [{ objects } = { objects: [] }] = overlays;
    const redis = one(objects, 'Deployment', 'redis');
    expect(redis.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(podOf(redis).terminationGracePeriodSeconds).toBeLessThanOrEqual(10);
    expect(all(objects, 'PodDisruptionBudget')).toHaveLength(1);
  });
});
