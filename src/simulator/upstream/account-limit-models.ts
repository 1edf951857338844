import type { NestableLimitSpec } from '../limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../limit-models/limit-model-spec.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';
import type { MethodAndPath } from './request-match.ts';

/** An account, as the upstream limits it. */
export interface AccountSpec {
  readonly name: string;
  readonly limit: NestableLimitSpec;
}

/** The limit models of an upstream's accounts. @throws RangeError when a number of a spec is out of its range */
export function makeAccountModels(
  accounts: readonly AccountSpec[],
): (request: MethodAndPath) => LimitModel | undefined {
  const models = new Map<string | undefined, LimitModel>();
  for (const { name, limit } of accounts) models.set(name, makeLimitModel(limit));
  return ({ account }) => models.get(account);
}
