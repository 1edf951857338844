import type { AsyncWritePolicy } from '../../core/delivery/async-write-policy.ts';
import type { AsyncConfig } from '../schema/config-schema.ts';
import { ASYNC_SCHEDULE } from '../schema/delivery/async-schema.ts';
import { scheduleInEffect } from '../schema/delivery/schedule-in-effect.ts';

/** @param written `async` of the route; undefined: its writes are sent at once */
export function compileAsyncWrites(written: AsyncConfig | undefined): AsyncWritePolicy | undefined {
  return written && { ...written, schedule: scheduleInEffect(written.schedule, ASYNC_SCHEDULE) };
}
