import type { Requester } from '../../core/quota/requester.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import { addressIn, sourceOfClient } from '../../core/rate/breaker/request-attributes.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Inbound } from '../server/server-request.ts';
import type { CheckPoint } from '../request/snapshot-types.ts';
import type { Problem } from '../response/problem-details.ts';
import { fault } from '../response/problem-details.ts';
import type { Wrapping } from '../server/write-response.ts';
import { endAnswer, writeEmpty } from '../server/write-response.ts';
import type { ChecksParts, Come } from './ext-authz-api.ts';
import type { Permit } from './check-permit.ts';
import { readAnswer } from './reported-response.ts';
import type { Report } from './parse-reports.ts';
import { readReports } from './parse-reports.ts';
import { showsToken } from './bearer-token.ts';

/** Of a body, in bytes. */
const MOST_BYTES = 64 * 1024;
/** Of what was sent longer ago than this, the limit has forgotten what it was then. */
const OLDEST: Millis = 300_000;

/** Takes reports of what came of requests that were checked here, one or a list of them. */
export class Reports {
  readonly #parts: ChecksParts;

  constructor(parts: ChecksParts) {
    this.#parts = parts;
  }

  take(point: CheckPoint, { request, response, snapshot, upgrade }: Come): void {
    upgrade?.decline();
    const { refusals } = this.#parts;
    const refused = this.#refuse(point, request);
    if (refused !== undefined) {
      return refusals.refuse(request, response, refused, false, refused.status === 401 ? challenge : undefined);
    }
    const timer = setTimeout(() => settle(TOO_SLOW), snapshot.bodyIdle);
    const settle = (told: Problem | Buffer): void => {
      clearTimeout(timer);
      request.removeAllListeners('data').removeAllListeners('end');
      if (response.destroyed) return;
      const problem = Buffer.isBuffer(told) ? this.#learn(point, told.toString()) : told;
      if (problem !== undefined) return refusals.refuse(request, response, problem);
      writeEmpty(response, 204, ['Via', this.#parts.context.via, 'Cache-Control', 'no-store']);
      endAnswer(response, request);
    };
    response.on('close', () => clearTimeout(timer));
    if (request.expectsContinue) response.writeContinue();
    request.expectsContinue = false;
    read(request, settle);
  }

  #refuse({ token }: CheckPoint, { verb, headers }: Inbound): Problem | undefined {
    if (verb !== 'POST') return fault(405, 'Method not allowed', 'What came of a request is told by POST.', 'method');
    if (token === undefined) {
      return fault(403, 'Forbidden', 'Nothing can be reported here: the configuration has no check.token.', 'no_token');
    }
    if (showsToken(headers.authorization, token)) return undefined;
    return fault(401, 'Unauthorized', 'Send check.token as Authorization: Bearer.', 'unauthorized');
  }

  #learn(point: CheckPoint, text: string): Problem | undefined {
    const reports = readReports(text, point.targets);
    if (typeof reports === 'string') return fault(400, 'Bad report', reports, 'bad_report');
    for (const each of reports) this.#tell(each, point);
    this.#parts.context.gateTimer.rearm();
    return undefined;
  }

  #tell({ permit, answer }: Report, { targets }: CheckPoint): void {
    const { gate, clock, listen } = this.#parts.context;
    const { upstream, limits } = permit;
    const target = targets.get(upstream);
    const now = clock.now();
    const took = Math.min(OLDEST, Math.max(0, Date.now() - permit.at));
    listen({ type: 'reported', upstream, status: answer.status });
    if (target === undefined || limits[0]?.scope !== target.scope) return; // it has been changed since
    const ticket = new ReportedTicket(permit);
    const hints = readAnswer(answer, target.throttle, Date.now());
    gate.report(ticket, { kind: 'response', status: answer.status, hints, took }, now - took, now);
  }
}

/** Of a request that was sent by others. */
class ReportedTicket extends Ticket {
  readonly #permit: Permit;

  constructor(permit: Permit) {
    const { upstream, client, limits } = permit;
    super(upstream, client, 1, limits, () => undefined);
    this.#permit = permit;
  }

  override get source(): Source {
    return this.#permit.source ?? sourceOfClient(this.client);
  }

  /** Of the address there is its number alone. */
  override get requester(): Requester {
    return { ...super.requester, address: addressIn(this.source) };
  }

  protected override credential(): number | undefined {
    return this.#permit.credential;
  }
}

function challenge({ status }: Problem): Wrapping {
  return { status, headers: ['WWW-Authenticate', 'Bearer realm="tidegate"'] };
}

const NOTHING = Buffer.alloc(0);
const TOO_SLOW = fault(408, 'Request body too slow', 'The report did not come in time.', 'body_idle');
const TOO_LARGE = fault(413, 'Content too large', `A report has at most ${MOST_BYTES} bytes.`, 'body_too_large');

function read(request: Inbound, settle: (told: Problem | Buffer) => void): void {
  if (!request.hasBody) return settle(NOTHING); // it may be no stream, and never end: http-server.ts
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) settle(TOO_LARGE);
    else chunks.push(chunk);
  });
  request.on('end', () => settle(Buffer.concat(chunks)));
}
