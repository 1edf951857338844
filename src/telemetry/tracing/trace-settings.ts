/** Whether OpenTelemetry's variables ask for traces. What they say besides is read by its SDK. */
export type TraceSettings =
  | { readonly kind: 'off'; readonly warning?: string }
  | { readonly kind: 'on'; readonly warning?: string };

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/** On where an endpoint or the exporter `otlp` is named, and neither the SDK is disabled nor the exporter is `none`. */
export function readTraceSettings(env: NodeJS.ProcessEnv): TraceSettings {
  const exporter = wordOf(env, 'OTEL_TRACES_EXPORTER');
  const isNamed = ENDPOINTS.some((name) => wordOf(env, name) !== undefined);
  if (wordOf(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return { kind: 'off' };
  if (exporter === undefined && !isNamed) return { kind: 'off' };
  if (exporter !== undefined && exporter !== 'otlp') {
    return { kind: 'off', warning: `OTEL_TRACES_EXPORTER is '${exporter}': only otlp and none are known here` };
  }
  const protocol = PROTOCOLS.map((name) => wordOf(env, name)).find((word) => word !== undefined);
  if (protocol === undefined || protocol === 'http/json') return { kind: 'on' };
  return { kind: 'on', warning: `traces are sent as http/json, not as ${protocol}: the endpoint must take that` };
}

/** Empty is unset (OpenTelemetry, "Environment Variable Specification"). */
function wordOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const word = env[name]?.trim();
  return word === '' ? undefined : word;
}
