/** What is open to operators beside the proxy: the admin port, and the telemetry port. */
import type { Opened } from './resource-stack.ts';
import type { AdminOptions, AdminServer } from '../admin/admin-server.ts';
import { startAdmin, startTelemetry } from '../admin/admin-server.ts';
import { writeAddress } from '../config/values/listen-address.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Bound } from '../core/overload/resource-bound.ts';
import { permit } from './unix-socket.ts';

export interface Operators {
  readonly adminUrl: string | undefined;
  readonly telemetryUrl: string | undefined;
  readonly bounds: readonly Bound[];
}

/** Before that: who asks for metrics on the first of them may come before the second is open. */
export const NOT_OPEN: Operators = { adminUrl: undefined, telemetryUrl: undefined, bounds: [] };

/**
 * @param opened gets what closes each of them
 * @throws the error of listen(2), with its code
 */
export async function openToOperators(
  { admin, telemetry }: Pick<Config, 'admin' | 'telemetry'>,
  { operations, ...shown }: Omit<AdminOptions, 'listen' | 'token'>,
  opened: Pick<Opened, 'push'>,
): Promise<Operators> {
  const servers: AdminServer[] = [];
  const keep = (server: AdminServer): string => {
    servers.push(server);
    opened.push(() => server.close());
    const written = writeAddress(server.address);
    return server.address.kind === 'unix' ? written : `http://${written}`;
  };
  let adminUrl: string | undefined;
  if (admin !== false) {
    adminUrl = keep(await startAdmin({ ...shown, listen: admin.listen, token: admin.token, operations }));
    permit(admin.listen, admin.permissions);
  }
  const telemetryUrl =
    telemetry === undefined ? undefined : keep(await startTelemetry({ ...shown, listen: telemetry }));
  return {
    adminUrl,
    telemetryUrl,
    get bounds() {
      return servers.map(({ bound }) => bound);
    },
  };
}
