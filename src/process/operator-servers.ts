/** The servers for operators: the admin port and the telemetry port. */
import { sampleHistory } from './sample-history.ts';
import type { ResourceStack } from './resource-stack.ts';
import type { AdminOptions, AdminServer } from '../admin/admin-server.ts';
import { startAdminServer, startTelemetryServer } from '../admin/admin-server.ts';
import { formatListenAddress } from '../config/values/listen-address.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import type { MetricsExportOptions } from '../telemetry/otlp/start-metrics-export.ts';
import { exportMetrics } from './exports/export-metrics.ts';
import { setSocketPermissions } from './unix-socket.ts';

export interface OperatorServers {
  readonly adminUrl: string | undefined;
  readonly telemetryUrl: string | undefined;
  readonly bounds: readonly ResourceBound[];
}

/** Used until both are open: metrics may be scraped from the first before that. */
export const NO_OPERATOR_SERVERS: OperatorServers = { adminUrl: undefined, telemetryUrl: undefined, bounds: [] };

/**
 * Opens the servers, and exports metrics if that is enabled.
 * @param resources gets the close function of each
 * @throws the error of listen(2), with its code
 */
export async function startOperatorOutputs(
  config: Pick<Config, 'admin' | 'telemetry'>,
  { operations, readiness, ...options }: Omit<AdminOptions, 'listen' | 'token'> & MetricsExportOptions,
  resources: Pick<ResourceStack, 'push'>,
): Promise<OperatorServers> {
  const { registry } = options;
  const servers = await startOperatorServers(config, { registry, readiness, operations }, resources);
  await exportMetrics(options, resources);
  return servers;
}

/**
 * @param resources gets the close function of each
 * @throws the error of listen(2), with its code
 */
async function startOperatorServers(
  { admin, telemetry }: Pick<Config, 'admin' | 'telemetry'>,
  { operations, ...options }: Omit<AdminOptions, 'listen' | 'token'>,
  resources: Pick<ResourceStack, 'push'>,
): Promise<OperatorServers> {
  const servers: AdminServer[] = [];
  const register = (server: AdminServer): string => {
    servers.push(server);
    resources.push(() => server.close());
    const addressText = formatListenAddress(server.address);
    return server.address.kind === 'unix' ? addressText : `http://${addressText}`;
  };
  let adminUrl: string | undefined;
  if (admin !== false) {
    adminUrl = register(await startAdminServer({ ...options, listen: admin.listen, token: admin.token, operations }));
    setSocketPermissions(admin.listen, admin.permissions);
    if (operations !== undefined) sampleHistory(operations, resources);
  }
  const telemetryUrl =
    telemetry === undefined ? undefined : register(await startTelemetryServer({ ...options, listen: telemetry }));
  return {
    adminUrl,
    telemetryUrl,
    get bounds() {
      return servers.map(({ bound }) => bound);
    },
  };
}
