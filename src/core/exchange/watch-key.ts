import type { KeyRecord } from '../idempotency/key-record.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type { ExchangeGenerator, ExchangeStep } from './steps.ts';

/** What other requests have done with the key of an exchange, as it last learned. */
export interface KeyWatch {
  record: KeyRecord | undefined;
}

/** Runs an exchange, and notes in `watch` what it learns about its key. */
export function* watchKey(exchange: ExchangeGenerator, watch: KeyWatch): ExchangeGenerator {
  let next: IteratorResult<ExchangeStep, ExchangeVerdict> = exchange.next();
  while (next.done !== true) {
    const result = yield next.value;
    if (result.kind === 'claimed' || result.kind === 'known') watch.record = result.record;
    next = exchange.next(result);
  }
  return next.value;
}
