import type { DeliveryRow } from '../../admin/page/api-types.ts';
import { printableJson } from '../../telemetry/format-values.ts';
import type { CommandFailure } from '../admin-request.ts';
import type { DeliveriesApi, FetchResult } from './deliveries-api.ts';
import type { DeliveriesListQuery } from './deliveries-arguments.ts';

/** Resolves once the text is written, so that no more is read before; false if nobody reads it any more. */
export type WriteText = (text: string) => Promise<boolean>;

type ExportEnd =
  | { readonly kind: 'exported' }
  | { readonly failure: CommandFailure; readonly last: string | undefined };

/**
 * Writes those that match as JSON, one a line. Memory holds a page of them, or one with its request.
 * @returns at a failure, the id of the last one that was written
 */
export async function exportDeliveries(
  api: Pick<DeliveriesApi, 'pages' | 'find'>,
  { query, message }: { readonly query: DeliveriesListQuery; readonly message: boolean },
  write: WriteText,
): Promise<ExportEnd> {
  let last: string | undefined;
  for await (const page of api.pages(query)) {
    if (page.kind !== 'fetched') return { failure: page.failure, last };
    const { deliveries } = page.data;
    if (!message) {
      if (!(await write(deliveries.map(toLine).join('')))) return EXPORTED;
      last = deliveries.at(-1)?.id ?? last;
      continue;
    }
    for (const row of deliveries) {
      const found = await api.find(row.id, true);
      if (found.kind !== 'fetched' && !isGone(found)) return { failure: found.failure, last };
      // One that has been removed since its page was read has no request any more.
      if (!(await write(toLine(found.kind === 'fetched' ? found.data : { ...row, message: null })))) return EXPORTED;
      last = row.id;
    }
  }
  return EXPORTED;
}

const EXPORTED = { kind: 'exported' } as const;

function isGone(found: Exclude<FetchResult<never>, { readonly kind: 'fetched' }>): boolean {
  return found.kind === 'refused' && found.status === 404;
}

function toLine(delivery: DeliveryRow): string {
  return `${printableJson(delivery)}\n`;
}
