/** Whether the variables of OpenTelemetry enable the export of a signal. Its SDK reads those about the collector. */
export type ExportSettings =
  | { readonly kind: 'off'; readonly warning?: string }
  | { readonly kind: 'on'; readonly warning?: string };

/** A signal of OpenTelemetry, as it is written in its variables and in messages. */
interface Signal {
  readonly name: 'TRACES' | 'METRICS';
  readonly label: string;
  /** Endpoints that turn it on. */
  readonly endpoints: readonly string[];
}

export const TRACES: Signal = {
  name: 'TRACES',
  label: 'traces',
  endpoints: ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
};
/** The endpoint of all signals does not turn them on: it is set where only traces are wanted, because Prometheus scrapes metrics. */
export const METRICS: Signal = {
  name: 'METRICS',
  label: 'metrics',
  endpoints: ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'],
};

/** On if an endpoint of the signal or the exporter `otlp` is set, the SDK is not disabled and the exporter is not `none`. */
export function readExportSettings(env: NodeJS.ProcessEnv, { name, label, endpoints }: Signal): ExportSettings {
  const exporter = readVariable(env, `OTEL_${name}_EXPORTER`);
  const isNamed = endpoints.some((endpoint) => readVariable(env, endpoint) !== undefined);
  if (readVariable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return { kind: 'off' };
  if (exporter === undefined && !isNamed) return { kind: 'off' };
  if (exporter !== undefined && exporter !== 'otlp') {
    return {
      kind: 'off',
      warning: `OTEL_${name}_EXPORTER is '${exporter}': only otlp and none are supported; ${label} are off`,
    };
  }
  const protocols = [`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`, 'OTEL_EXPORTER_OTLP_PROTOCOL'];
  const protocol = protocols.map((each) => readVariable(env, each)).find((word) => word !== undefined);
  if (protocol === undefined || protocol === 'http/json') return { kind: 'on' };
  return { kind: 'on', warning: `${label} are sent as http/json, not as ${protocol}: the endpoint must accept JSON` };
}

/** A variable with milliseconds. Without a valid value, the default applies. */
export function readMillis(
  env: NodeJS.ProcessEnv,
  name: string,
  byDefault: number,
): { readonly millis: number; readonly warning?: string } {
  const word = readVariable(env, name);
  if (word === undefined) return { millis: byDefault };
  if (/^[1-9]\d{0,8}$/.test(word)) return { millis: Number(word) };
  return { millis: byDefault, warning: `${name} is '${word}', not a number of milliseconds: ${byDefault} is used` };
}

/** Empty is unset (OpenTelemetry, "Environment Variable Specification"). */
function readVariable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const word = env[name]?.trim();
  return word === '' ? undefined : word;
}
