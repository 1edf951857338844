import { listElements } from '../core/http-semantics/list-field.ts';
import type { Format } from '../telemetry/metrics/exposition/exposition-format.ts';

const OPENMETRICS = 'application/openmetrics-text';
/** What a scraper that takes anything means by it. */
const TEXT: ReadonlySet<string> = new Set(['text/plain', 'text/*', '*/*']);

/**
 * The format of an exposition for a scraper's Accept (RFC 9110 §12.5.1): OpenMetrics where 1.0.0 of it is taken by name, and
 * nothing else of ours is liked better.
 */
export function chooseFormat(accept: string | undefined): Format {
  let openmetrics = 0;
  let text = 0;
  for (const range of listElements(accept?.toLowerCase())) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const quality = Number(valueOf(parameters, 'q') ?? 1);
    if (type === OPENMETRICS && (valueOf(parameters, 'version') ?? '1.0.0') === '1.0.0') {
      openmetrics = Math.max(openmetrics, quality);
    } else if (TEXT.has(type)) {
      text = Math.max(text, quality);
    }
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'prometheus';
}

function valueOf(parameters: readonly string[], name: string): string | undefined {
  const found = parameters.find((parameter) => parameter.startsWith(`${name}=`));
  return found?.slice(name.length + 1).replaceAll('"', '');
}
