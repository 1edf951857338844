/** Checks what Redis has stored as the state of a name: another program can write there, and data can be damaged. */
import type { ClaimProgress } from '../../../core/idempotency/claim-progress.ts';
import type { KeyRecord } from '../../../core/idempotency/key-record.ts';
import type { KeyClaimRequest } from '../../../core/idempotency/key-store.ts';
import type { NameState, SharedClaim, SharedWrite } from '../../../core/idempotency/name-session.ts';
import type { WriteOutcome } from '../../../core/idempotency/write-outcome.ts';

/** The stored form: the key in Redis names the write. */
export interface StoredNameState {
  readonly writes: readonly Omit<SharedWrite, 'name' | 'upstream'>[];
  readonly claims: readonly StoredSharedClaim[];
}

interface StoredSharedClaim extends Omit<SharedClaim, 'request'> {
  readonly request: Omit<KeyClaimRequest, 'identity'> & { readonly identity: StoredIdentity };
}

type StoredIdentity = Omit<KeyClaimRequest['identity'], 'name' | 'upstream'>;

type Check = (value: unknown) => boolean;
/** One for each field, so that none is forgotten. */
type Checks<T> = { readonly [K in keyof Required<T>]: Check };

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => Number.isFinite(value);
const isFlag: Check = (value) => typeof value === 'boolean';
const isCredentials: Check = (value) => isNumber(value) || (Array.isArray(value) && value.every(isNumber));

const IDENTITY: Checks<StoredIdentity> = {
  ...{ credential: isNumber, owner: isNumber, credentialHeader: isText, body: optional(isNumber) },
  ...{ keyOwner: optional(isNumber), keyOwnerKind: optional(isNumber) },
};

const RECORD: Checks<KeyRecord> = {
  ...{ firstSentAt: isNumber, isAnswered: isFlag },
  ...{
    isArriving: optional(isFlag),
    isFinal: optional(isFlag),
    isInUse: optional(isFlag),
    isInDoubt: optional(isFlag),
  },
};

const isOutcome = oneOf({
  answered: true,
  not_processed: true,
  rejected: true,
  may_have_taken_effect: true,
  nothing_sent: true,
} satisfies Record<WriteOutcome, true>);

const PROGRESS: Checks<ClaimProgress> = {
  state: oneOf({ new: true, waiting: true, held: true, shared: true, over: true } satisfies Record<
    ClaimProgress['state'],
    true
  >),
  record: optional(objectOf(RECORD)),
  firstSentAt: optional(isNumber),
  endpoint: optional(isText),
  ...{ isDelivered: isFlag, isResponding: isFlag, isFinal: isFlag, mayHaveTakenEffect: isFlag, hasReached: isFlag },
  last: optional(isOutcome),
};

const REQUEST: Checks<KeyClaimRequest> = {
  identity: objectOf(IDENTITY),
  place: objectOf({ fairnessKey: isText, client: isText }),
  concurrent: oneOf({ wait: true, refuse: true, pass: true } satisfies Record<KeyClaimRequest['concurrent'], true>),
  onStoreLost: oneOf({ refuse: true, local: true } satisfies Record<KeyClaimRequest['onStoreLost'], true>),
  ...{ ttl: optional(isNumber), endpoint: optional(isText), isNew: optional(isFlag) },
};

const WRITE: Checks<StoredNameState['writes'][number]> = {
  ...IDENTITY,
  state: oneOf({ new: true, unresolved: true, answered: true } satisfies Record<SharedWrite['state'], true>),
  ...{ firstSentAt: isNumber, endpoint: optional(isText), finalFor: isCredentials, unresolvedFor: isCredentials },
  wasDelivered: isFlag,
};

const CLAIM: Checks<StoredSharedClaim> = {
  ...{ id: isText, owner: isText, write: Number.isInteger, request: objectOf(REQUEST), progress: objectOf(PROGRESS) },
};

const STATE: Checks<NameState> = { writes: arrayOf(objectOf(WRITE)), claims: arrayOf(objectOf(CLAIM)) };

const isState = objectOf(STATE);

/** Whether each field that is read has its type, and each claim has its write. */
export function isStoredNameState(value: unknown): value is StoredNameState {
  return hasFields(value) && value.claims.every(({ write }) => value.writes[write] !== undefined);
}

function hasFields(value: unknown): value is StoredNameState {
  return isState(value);
}

function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

/** @param allowed the type requires all values */
function oneOf(allowed: Readonly<Record<string, true>>): Check {
  return (value) => typeof value === 'string' && Object.hasOwn(allowed, value);
}

function arrayOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function objectOf(checks: Readonly<Record<string, Check>>): Check {
  const fields = Object.entries(checks);
  return (value) =>
    typeof value === 'object' && value !== null && fields.every(([name, check]) => check(Reflect.get(value, name)));
}
