import { z } from 'zod';

const summary = z.object({
  charges: z.number(),
  doubleCharges: z.number(),
  mismatches: z.number(),
  doubled: z.unknown(),
});

/** Compares the charges reported to clients with the ledger. @param charges by intent */
export async function checkLedger(
  upstream: string,
  charges: ReadonlyMap<string, string>,
): Promise<{ readonly summary: string; readonly faults: readonly string[] }> {
  const ledger = summary.parse(await (await fetch(`${upstream}/practice/ledger`)).json());
  const ids = new Set(charges.values());
  const faults: string[] = [];
  if (ledger.doubleCharges > 0) faults.push(`charged twice: ${JSON.stringify(ledger.doubled)}`);
  if (ledger.mismatches > 0) faults.push(`${ledger.mismatches} keys arrived with another body`);
  if (ids.size !== charges.size) faults.push(`${charges.size} intents were answered with ${ids.size} distinct charges`);
  if (ids.size > ledger.charges) faults.push(`${ids.size} charges were reported, but ${ledger.charges} were made`);
  return { summary: `${ledger.charges} charges made, ${ids.size} of them reported to clients, none twice`, faults };
}
