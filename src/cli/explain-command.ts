/** `tidegate explain ID`: fetches an explanation from the admin port of a running proxy and renders it. */
import type { Explanation } from '../telemetry/explanations/build-explanation.ts';
import { renderExplanation } from '../telemetry/explanations/render-explanation.ts';
import { type AdminRequest, type CommandFailure, notFromTidegate, requestAdmin } from './admin-request.ts';

export interface ExplainOptions extends Pick<AdminRequest, 'admin' | 'token'> {
  readonly id: string;
  readonly json: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

export type ExplainResult = { readonly kind: 'explained'; readonly text: string } | CommandFailure;

export async function explainRequest({ id, admin, token, json, width }: ExplainOptions): Promise<ExplainResult> {
  const path = `/explain/${encodeURIComponent(id)}`;
  const response = await requestAdmin({ admin, token, method: 'GET', path, subject: id, problems: [404] });
  if (response.kind === 'failed') return response;
  const { payload } = response;
  if (!isExplanation(payload)) return notFromTidegate(admin);
  return { kind: 'explained', text: json ? `${JSON.stringify(payload)}\n` : renderExplanation(payload, width) };
}

/** Checks what rendering needs: the proxy may be of another version. */
function isExplanation(payload: unknown): payload is Explanation {
  if (typeof payload !== 'object' || payload === null || !('steps' in payload) || !Array.isArray(payload.steps)) {
    return false;
  }
  const steps: readonly unknown[] = payload.steps;
  const areSteps = steps.every(
    (step) =>
      typeof step === 'object' &&
      step !== null &&
      ['text', 'what'].every((name) => typeof Reflect.get(step, name) === 'string') &&
      typeof Reflect.get(step, 'at') === 'number',
  );
  const areStrings = ['id', 'at', 'method', 'path', 'route', 'upstream', 'outcome'].every(
    (name) => typeof Reflect.get(payload, name) === 'string',
  );
  return areSteps && areStrings && 'client' in payload && typeof payload.client === 'object' && payload.client !== null;
}
