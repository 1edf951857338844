import type { RequestRecord } from '../../core/events/request-record.ts';

/** A record with all fields, present or undefined. */
type CompleteRecord = { -readonly [Field in keyof Required<RequestRecord>]: RequestRecord[Field] };

/**
 * A record that is overwritten in place. A new object kept for a while would be copied by scavenges, with everything it
 * references, and all kept ones at once. This one is allocated once, moves to the old generation, and stays there
 * (docs/performance.md).
 */
export class ReusableRecord implements CompleteRecord {
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
  queueTime = 0;
  sleepTime = 0;
  timeToHead = 0;
  took = 0;
  retryAfterSeconds: RequestRecord['retryAfterSeconds'];
  retryAfterFrom: RequestRecord['retryAfterFrom'];
  isTruncated = false;
  isAbandonedWrite: RequestRecord['isAbandonedWrite'];
  cause: RequestRecord['cause'];
  upgradeBytes: RequestRecord['upgradeBytes'];
  wouldHave: RequestRecord['wouldHave'];
  wouldRetry: RequestRecord['wouldRetry'];
  detail: RequestRecord['detail'];
  retryOutcome: RequestRecord['retryOutcome'];
  mintedKey: RequestRecord['mintedKey'];
  upstreamKey: RequestRecord['upstreamKey'];
  delivery: RequestRecord['delivery'];
  write: RequestRecord['write'];
  traceId: RequestRecord['traceId'];
  spanId: RequestRecord['spanId'];
  xRequestId: RequestRecord['xRequestId'];
  fallbackFrom: RequestRecord['fallbackFrom'];
  endpoint: RequestRecord['endpoint'];
  bytesIn: RequestRecord['bytesIn'];
  bytesOut: RequestRecord['bytesOut'];

  /** Field by field: a loop over the names would double the cost of a record. */
  overwrite(record: RequestRecord): void {
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
    this.queueTime = record.queueTime;
    this.sleepTime = record.sleepTime;
    this.timeToHead = record.timeToHead;
    this.took = record.took;
    this.retryAfterSeconds = record.retryAfterSeconds;
    this.retryAfterFrom = record.retryAfterFrom;
    this.isTruncated = record.isTruncated;
    this.isAbandonedWrite = record.isAbandonedWrite;
    this.cause = record.cause;
    this.upgradeBytes = record.upgradeBytes;
    this.wouldHave = record.wouldHave;
    this.wouldRetry = record.wouldRetry;
    this.detail = record.detail;
    this.retryOutcome = record.retryOutcome;
    this.mintedKey = record.mintedKey;
    this.upstreamKey = record.upstreamKey;
    this.delivery = record.delivery;
    this.write = record.write;
    this.traceId = record.traceId;
    this.spanId = record.spanId;
    this.xRequestId = record.xRequestId;
    this.fallbackFrom = record.fallbackFrom;
    this.endpoint = record.endpoint;
    this.bytesIn = record.bytesIn;
    this.bytesOut = record.bytesOut;
  }

  /** A copy that is not overwritten. */
  copy(): RequestRecord {
    return Object.assign({}, this as CompleteRecord);
  }
}
