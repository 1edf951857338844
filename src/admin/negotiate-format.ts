import { parseListField, trimSpace } from '../core/http-semantics/list-field.ts';
import type { ExpositionFormat } from '../telemetry/metrics/exposition/exposition-format.ts';

const OPENMETRICS = 'application/openmetrics-text';
/** Media ranges that select the Prometheus text format. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['text/plain', 'text/*', '*/*']);

/**
 * Selects the exposition format by the Accept header (RFC 9110 §12.5.1): OpenMetrics if the scraper names version 1.0.0 with a
 * quality at least as high as that of the text format.
 */
export function negotiateFormat(accept: string | undefined): ExpositionFormat {
  let openmetrics = 0;
  let text = 0;
  for (const range of parseListField(accept?.toLowerCase())) {
    const [type = '', ...parameters] = range.split(';').map(trimSpace);
    const quality = Number(parameterValue(parameters, 'q') ?? 1);
    if (type === OPENMETRICS && (parameterValue(parameters, 'version') ?? '1.0.0') === '1.0.0') {
      openmetrics = Math.max(openmetrics, quality);
    } else if (TEXT_TYPES.has(type)) {
      text = Math.max(text, quality);
    }
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'prometheus';
}

function parameterValue(parameters: readonly string[], name: string): string | undefined {
  const found = parameters.find((parameter) => parameter.startsWith(`${name}=`));
  return found?.slice(name.length + 1).replaceAll('"', '');
}
