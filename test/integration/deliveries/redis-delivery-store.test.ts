/** The deliveries of a store in a real Redis. */
import { expect, test } from 'vitest';
import { checkSequences } from '../../support/deliveries/check-sequences.ts';
import { describeDeliveryStore } from '../../support/deliveries/describe-delivery-store.ts';
import { redisPlace } from '../../support/deliveries/redis-place.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

describeDeliveryStore('Redis', redisPlace);

test('changes, restarts and removals of deliveries in Redis leave what a simple model has', async () => {
  const server = startRedis();
  await expect(checkSequences(() => redisPlace(server), 20)).resolves.toBeUndefined();
});
