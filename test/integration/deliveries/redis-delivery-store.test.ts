/** The deliveries of a store in a real Redis. */
import { describeDeliveryStore } from '../../support/deliveries/describe-delivery-store.ts';
import { redisPlace } from '../../support/deliveries/redis-place.ts';

describeDeliveryStore('Redis', redisPlace);
