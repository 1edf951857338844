import type { AsyncWritePolicy } from '../../core/delivery/async-write-policy.ts';
import type { AsyncConfig, RouteConfig } from '../schema/config-schema.ts';
import { ASYNC_SCHEDULE } from '../schema/delivery/async-schema.ts';
import { routeName } from '../schema/route-name.ts';
import { scheduleInEffect } from '../schema/delivery/schedule-in-effect.ts';

/**
 * @param written `async` of the route; undefined: its writes are sent at once
 * @param routes all of the configuration
 */
export function compileAsyncWrites(
  written: AsyncConfig | undefined,
  routes: readonly RouteConfig[] = [],
): AsyncWritePolicy | undefined {
  if (written === undefined) return undefined;
  const target = routes.find((each) => routeName(each) === written.callback);
  return {
    ...written,
    schedule: scheduleInEffect(written.schedule, ASYNC_SCHEDULE),
    callback: target && { name: routeName(target), path: target.path },
  };
}
