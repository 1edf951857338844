/** Deliveries in SQLite: the contract of all stores. */
import { describeDeliveryStore } from '../../support/deliveries/describe-delivery-store.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

describeDeliveryStore('SQLite', sqlitePlace);
