import { z } from 'zod';

const summary = z.object({
  charges: z.number(),
  doubleCharges: z.number(),
  mismatches: z.number(),
  doubled: z.unknown(),
});

/** Holds what clients were told was charged against what was. @param charges by intent */
export async function checkLedger(
  upstream: string,
  charges: ReadonlyMap<string, string>,
): Promise<{ readonly told: string; readonly faults: readonly string[] }> {
  const ledger = summary.parse(await (await fetch(`${upstream}/practice/ledger`)).json());
  const ids = new Set(charges.values());
  const faults: string[] = [];
  if (ledger.doubleCharges > 0) faults.push(`charged twice: ${JSON.stringify(ledger.doubled)}`);
  if (ledger.mismatches > 0) faults.push(`${ledger.mismatches} keys came with another body`);
  if (ids.size !== charges.size) faults.push(`${charges.size} intents were told of ${ids.size} charges`);
  if (ids.size > ledger.charges) faults.push(`${ids.size} charges were told, and ${ledger.charges} were made`);
  return { told: `${ledger.charges} charges made, ${ids.size} of them told, none twice`, faults };
}
