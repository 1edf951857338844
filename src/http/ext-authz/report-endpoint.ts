import type { Requester } from '../../core/quota/requester.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { addressNumberOf, attributesOfClient } from '../../core/rate/breaker/request-attributes.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { Millis } from '../../core/scalars.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { ExtAuthzSettings } from '../request/snapshot-types.ts';
import type { Problem } from '../response/problem.ts';
import { requestProblem } from '../response/problem-details.ts';
import type { MappedStatus } from '../server/write-problem.ts';
import { endResponse } from '../server/end-response.ts';
import { writeEmpty } from '../server/write-response.ts';
import type { ExtAuthzApiOptions, ExtAuthzExchange } from './ext-authz-options.ts';
import type { CheckPermit } from './check-permit.ts';
import { hintsOfReport } from './reported-response.ts';
import type { OutcomeReport } from './parse-reports.ts';
import { parseReports } from './parse-reports.ts';
import { hasBearerToken } from './bearer-token.ts';

/** Maximum body size. */
const MAX_BYTES = 64 * 1024;
/** Older requests count as this old: the limit has no record of what it was before. */
const MAX_AGE: Millis = 300_000;

/** Takes reports of the responses to checked requests, one or a list. */
export class ReportEndpoint {
  readonly #options: ExtAuthzApiOptions;

  constructor(options: ExtAuthzApiOptions) {
    this.#options = options;
  }

  handle(config: ExtAuthzSettings, { request, response, snapshot, upgrade }: ExtAuthzExchange): void {
    upgrade?.decline();
    const { rejections } = this.#options;
    const rejection = this.#rejectionFor(config, request);
    if (rejection !== undefined) {
      return rejections.reject(
        request,
        response,
        rejection,
        false,
        rejection.status === 401 ? bearerChallenge : undefined,
      );
    }
    const timer = setTimeout(() => respond(TOO_SLOW), snapshot.bodyIdleTimeout);
    const respond = (input: Problem | Buffer): void => {
      clearTimeout(timer);
      request.removeAllListeners('data').removeAllListeners('end');
      if (response.destroyed) return;
      const problem = Buffer.isBuffer(input) ? this.#process(config, input.toString()) : input;
      if (problem !== undefined) return rejections.reject(request, response, problem);
      writeEmpty(response, 204, ['Via', this.#options.context.via, 'Cache-Control', 'no-store']);
      endResponse(response, request);
    };
    response.on('close', () => clearTimeout(timer));
    if (request.expectsContinue) response.writeContinue();
    request.expectsContinue = false;
    readBody(request, respond);
  }

  #rejectionFor({ tokenDigest }: ExtAuthzSettings, { verb, headers }: HttpServerRequest): Problem | undefined {
    if (verb !== 'POST') {
      return requestProblem(405, 'Method not allowed', 'Send reports with POST.', 'method');
    }
    if (tokenDigest === undefined) {
      return requestProblem(
        403,
        'Forbidden',
        'Reports are turned off. Set check.token in the configuration.',
        'no_token',
      );
    }
    if (hasBearerToken(headers.authorization, tokenDigest)) return undefined;
    return requestProblem(401, 'Unauthorized', 'Send check.token in the header Authorization: Bearer.', 'unauthorized');
  }

  #process(config: ExtAuthzSettings, text: string): Problem | undefined {
    const reports = parseReports(text, config.targets);
    if (typeof reports === 'string') return requestProblem(400, 'Bad report', reports, 'bad_report');
    for (const each of reports) this.#report(each, config);
    this.#options.context.gateTimer.rearm();
    return undefined;
  }

  #report({ permit, response }: OutcomeReport, { targets }: ExtAuthzSettings): void {
    const { gate, clock, listen } = this.#options.context;
    const { upstream, limits } = permit;
    const target = targets.get(upstream);
    const now = clock.now();
    const took = Math.min(MAX_AGE, Math.max(0, Date.now() - permit.allowedAt));
    listen({ type: 'reported', upstream, status: response.status });
    if (target === undefined || limits[0]?.scope !== target.scope) return; // the configuration has changed since the check
    const ticket = new ReportedTicket(permit);
    const hints = hintsOfReport(response, target.throttle, Date.now());
    gate.onExternalOutcome(ticket, { kind: 'response', status: response.status, hints, took }, now - took, now);
  }
}

/** The gate ticket of a request that an ingress sent. */
class ReportedTicket extends Ticket {
  readonly #permit: CheckPermit;

  constructor(permit: CheckPermit) {
    const { upstream, client, limits } = permit;
    super(upstream, client, 1, limits, () => undefined);
    this.#permit = permit;
  }

  override get attributes(): RequestAttributes {
    return this.#permit.source ?? attributesOfClient(this.client);
  }

  /** Only the number of the address is known. */
  override get requester(): Requester {
    return { ...super.requester, address: addressNumberOf(this.attributes) };
  }

  protected override credential(): number | undefined {
    return this.#permit.credential;
  }
}

function bearerChallenge({ status }: Problem): MappedStatus {
  return { status, headers: ['WWW-Authenticate', 'Bearer realm="tidegate"'] };
}

const EMPTY_BODY = Buffer.alloc(0);
const TOO_SLOW = requestProblem(408, 'Request body too slow', 'The report did not arrive in time.', 'body_idle');
const TOO_LARGE = requestProblem(
  413,
  'Content too large',
  `A report has at most ${MAX_BYTES} bytes.`,
  'body_too_large',
);

function readBody(request: HttpServerRequest, onRead: (input: Problem | Buffer) => void): void {
  if (!request.hasBody) return onRead(EMPTY_BODY); // without a body the request may emit no `end`: see http-server.ts
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) onRead(TOO_LARGE);
    else chunks.push(chunk);
  });
  request.on('end', () => onRead(Buffer.concat(chunks)));
}
