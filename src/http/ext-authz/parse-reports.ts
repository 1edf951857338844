import { z } from 'zod';
import { suggest } from '../../config/values/suggest.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { ExtAuthzSettings } from '../request/snapshot-types.ts';
import { ReportedResponse } from './reported-response.ts';
import type { CheckPermit } from './check-permit.ts';
import { decodePermit, UNCOUNTED_PERMIT } from './check-permit.ts';

const MAX_REPORTS = 1000;

const ReportJson = ReportedResponse.extend({
  permit: z.string().max(4096).optional(),
  upstream: z.string().optional(),
  client: z
    .string()
    .regex(/^[0-9a-f]{16}$/, 'not the Tidegate-Client of a check')
    .optional(),
});
const ReportsJson = z.union([ReportJson.transform((one) => [one]), z.array(ReportJson).min(1).max(MAX_REPORTS)]);

type ReportJson = z.output<typeof ReportJson>;
type UpstreamTargets = ExtAuthzSettings['targets'];

/** A valid report. */
export interface OutcomeReport {
  readonly permit: CheckPermit;
  readonly response: ReportedResponse;
}

/** Parses the reports in a body. Returns a sentence if any of them is invalid: then none is used. */
export function parseReports(text: string, targets: UpstreamTargets): readonly OutcomeReport[] | string {
  const items = parseJson(text);
  if (typeof items === 'string') return items;
  const reports: OutcomeReport[] = [];
  for (const each of items) {
    if (each.permit === UNCOUNTED_PERMIT) continue;
    const report = parseReport(each, targets);
    if (typeof report === 'string') return report;
    reports.push(report);
  }
  return reports;
}

function parseJson(text: string): readonly ReportJson[] | string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'Expected JSON: {"permit": "…", "status": 429, "retryAfter": 2}, or a list of such reports.';
  }
  const read = ReportsJson.safeParse(json);
  if (read.success) return read.data;
  const list = z.array(ReportJson).max(MAX_REPORTS);
  const [issue] = (Array.isArray(json) ? list : ReportJson).safeParse(json).error?.issues ?? [];
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  return `${where}${issue?.message ?? 'This is not a report.'}`;
}

function parseReport(item: ReportJson, targets: UpstreamTargets): OutcomeReport | string {
  const permit = item.permit === undefined ? permitForUpstream(item, targets) : permitFromText(item, item.permit);
  if (typeof permit === 'string') return permit;
  const target = targets.get(permit.upstream);
  if (target === undefined) {
    return `Unknown upstream.${suggestion(permit.upstream, [...targets.keys()])}`;
  }
  const error = limitError(
    item.limit,
    permit,
    target.nestedLimits.map(({ name }) => name),
  );
  return error ?? { permit, response: item };
}

/** An upstream or a client beside a permit must match it. */
function permitFromText({ upstream, client }: ReportJson, text: string): CheckPermit | string {
  const permit = decodePermit(text);
  if (permit === undefined) return 'permit: not the Tidegate-Permit of a check.';
  if (upstream !== undefined && upstream !== permit.upstream) return 'upstream: the permit is for another upstream.';
  if (client !== undefined && client !== permit.client) return 'client: the permit is for another client.';
  return permit;
}

const CLIENT_NEEDED = 'client: required, because this upstream limits each client.';

/** Without a permit the request counts as sent just now, under the upstream's limit or its client's. */
function permitForUpstream({ upstream, client }: ReportJson, targets: UpstreamTargets): CheckPermit | string {
  if (upstream === undefined) return 'Send the permit of the request, or its upstream and client.';
  const scope = targets.get(upstream)?.scope ?? 'upstream';
  if (scope === 'credential') return 'permit: required, because this upstream limits each credential.';
  if (scope === 'client' && client === undefined) return CLIENT_NEEDED;
  const limit: LimitRef = { upstream, nested: '', scope, key: scope === 'client' ? (client ?? '') : '' };
  return { upstream, client: client ?? '', allowedAt: Date.now(), limits: [limit] };
}

/** @param known names of the upstream's nested limits */
function limitError(limit: string | undefined, { limits }: CheckPermit, known: readonly string[]): string | undefined {
  if (limit === undefined || limits.some(({ nested }) => nested === limit)) return undefined;
  if (known.includes(limit)) return 'limit: it did not apply to this request, or the permit is required to know.';
  return `limit: unknown limit of this upstream.${suggestion(limit, known)}`;
}

function suggestion(text: string, known: readonly string[]): string {
  const nearest = suggest(text, known);
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`;
}
