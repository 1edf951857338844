import type { Explanation } from '../../../src/telemetry/explanations/build-explanation.ts';
import type { Tidegate } from '../proxy/tidegate.ts';
import { eventually } from '../proxy/tidegate.ts';

/** Waits for the explanation of a finished request. @param id the Tidegate-Request-Id of its response */
export async function fetchExplanation(gate: Pick<Tidegate, 'adminUrl'>, id: string | undefined): Promise<Explanation> {
  const fetchIt = () => fetch(`${gate.adminUrl}/explain/${id}`);
  const answer = await eventually(fetchIt, ({ status }) => status === 200);
  return (await answer.json()) as Explanation;
}

/** A step as a word: `decided`, `sent 1`, `answered 503`. */
export function summarizeSteps({ steps }: Explanation): string[] {
  return steps.map(({ what, ...step }) => {
    const word = (name: string): string | undefined => {
      const value = step[name];
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
    };
    if (what === 'sent') return `sent ${word('attempt')}`;
    const more =
      word('status') ?? word('error') ?? word('decision') ?? word('during') ?? word('denied') ?? word('source');
    return more === undefined ? what : `${what} ${more}`;
  });
}

/** Returns the first step of a kind. */
export function findStep({ steps }: Explanation, what: string): Record<string, unknown> {
  const found = steps.find((step) => step.what === what);
  if (found === undefined) throw new Error(`no step is '${what}'`);
  return found;
}
