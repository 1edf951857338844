/** Whether the variables of OpenTelemetry enable tracing. Its SDK reads their other settings. */
export type TraceSettings =
  | { readonly kind: 'off'; readonly warning?: string }
  | { readonly kind: 'on'; readonly warning?: string };

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/** On if an endpoint or the exporter `otlp` is set, the SDK is not disabled and the exporter is not `none`. */
export function readTraceSettings(env: NodeJS.ProcessEnv): TraceSettings {
  const exporter = readVariable(env, 'OTEL_TRACES_EXPORTER');
  const isNamed = ENDPOINTS.some((name) => readVariable(env, name) !== undefined);
  if (readVariable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return { kind: 'off' };
  if (exporter === undefined && !isNamed) return { kind: 'off' };
  if (exporter !== undefined && exporter !== 'otlp') {
    return {
      kind: 'off',
      warning: `OTEL_TRACES_EXPORTER is '${exporter}': only otlp and none are supported; traces are off`,
    };
  }
  const protocol = PROTOCOLS.map((name) => readVariable(env, name)).find((word) => word !== undefined);
  if (protocol === undefined || protocol === 'http/json') return { kind: 'on' };
  return { kind: 'on', warning: `traces are sent as http/json, not as ${protocol}: the endpoint must accept that` };
}

/** Empty is unset (OpenTelemetry, "Environment Variable Specification"). */
function readVariable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const word = env[name]?.trim();
  return word === '' ? undefined : word;
}
