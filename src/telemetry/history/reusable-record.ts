import type { RequestRecord } from '../../core/events/proxy-events.ts';

/** Every field, whether or not a record has it. */
type Complete = { -readonly [Field in keyof Required<RequestRecord>]: RequestRecord[Field] };

/**
 * A record that others are written over. One that is kept for a while, as it was made, is copied by scavenges with all that it has, and
 * as many at once as are kept; this is made once, grows old, and is left alone (docs/performance.md).
 */
export class RecordCopy implements Complete {
  id = '';
  at = 0;
  route = '';
  upstream = '';
  method = '';
  path = '';
  client = '';
  clientName: RequestRecord['clientName'];
  status = 0;
  outcome: RequestRecord['outcome'] = 'forwarded';
  reason: RequestRecord['reason'];
  attempts = 0;
  polls: RequestRecord['polls'];
  queued = 0;
  slept = 0;
  toHead = 0;
  took = 0;
  retryAfter: RequestRecord['retryAfter'];
  retryAfterFrom: RequestRecord['retryAfterFrom'];
  cut = false;
  cause: RequestRecord['cause'];
  carried: RequestRecord['carried'];
  wouldHave: RequestRecord['wouldHave'];
  wouldRetry: RequestRecord['wouldRetry'];
  detail: RequestRecord['detail'];
  retryEnd: RequestRecord['retryEnd'];
  mintedKey: RequestRecord['mintedKey'];
  traceId: RequestRecord['traceId'];

  /** Field by field: a loop over their names would cost as much as the rest of what is done for a record. */
  write(record: RequestRecord): void {
    this.id = record.id;
    this.at = record.at;
    this.route = record.route;
    this.upstream = record.upstream;
    this.method = record.method;
    this.path = record.path;
    this.client = record.client;
    this.clientName = record.clientName;
    this.status = record.status;
    this.outcome = record.outcome;
    this.reason = record.reason;
    this.attempts = record.attempts;
    this.polls = record.polls;
    this.queued = record.queued;
    this.slept = record.slept;
    this.toHead = record.toHead;
    this.took = record.took;
    this.retryAfter = record.retryAfter;
    this.retryAfterFrom = record.retryAfterFrom;
    this.cut = record.cut;
    this.cause = record.cause;
    this.carried = record.carried;
    this.wouldHave = record.wouldHave;
    this.wouldRetry = record.wouldRetry;
    this.detail = record.detail;
    this.retryEnd = record.retryEnd;
    this.mintedKey = record.mintedKey;
    this.traceId = record.traceId;
  }

  /** What is in it now, for whoever keeps it for longer. */
  read(): RequestRecord {
    return Object.assign({}, this as Complete);
  }
}
