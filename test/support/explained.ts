import type { Explanation } from '../../src/telemetry/explanations/build-explanation.ts';
import type { Tidegate } from './tidegate.ts';
import { eventually } from './tidegate.ts';

/** What the admin port tells of a request, once it is over. @param id of its answer's Tidegate-Request-Id */
export async function explained(gate: Tidegate, id: string | undefined): Promise<Explanation> {
  const look = () => fetch(`${gate.adminUrl}/explain/${id}`);
  const answer = await eventually(look, ({ status }) => status === 200);
  return (await answer.json()) as Explanation;
}

/** A step as a word: `decided`, `sent 1`, `answered 503`. */
export function courseOf({ steps }: Explanation): string[] {
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

/** The first of a kind. */
export function stepOf({ steps }: Explanation, what: string): Record<string, unknown> {
  const found = steps.find((step) => step.what === what);
  if (found === undefined) throw new Error(`no step is '${what}'`);
  return found;
}
