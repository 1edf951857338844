/** The checks of `tidegate doctor`, in the order of its report. */
export type DoctorCheck =
  | 'config'
  | 'certificates'
  | 'state'
  | 'limits'
  | 'addresses'
  | 'upstreams'
  | 'redis'
  | 'clock'
  | 'running';

/**
 * A result of one check. No field contains a password, token or key of the configuration. What a Tidegate that runs reports, such as
 * the endpoints of its upstreams, is shown as it is.
 */
export type DoctorFinding = {
  readonly check: DoctorCheck;
  /** A setting with its position, a file, an address, or this machine. */
  readonly place: string;
  /** What was found, and its effect. */
  readonly meaning: string;
} & (
  | { readonly status: 'ok' }
  /** It could not be checked; `meaning` says why. */
  | { readonly status: 'skipped' }
  /** A warning has no effect yet, or one that may be intended. A problem prevents Tidegate from working as configured. */
  | { readonly status: 'warning' | 'problem'; readonly remedy: string }
);

export type Fault = Extract<DoctorFinding, { readonly remedy: string }>;

export function ok(check: DoctorCheck, place: string, meaning: string): DoctorFinding {
  return { check, status: 'ok', place, meaning };
}

export function skipped(check: DoctorCheck, place: string, meaning: string): DoctorFinding {
  return { check, status: 'skipped', place, meaning };
}

export function warning(check: DoctorCheck, place: string, meaning: string, remedy: string): DoctorFinding {
  return { check, status: 'warning', place, meaning, remedy };
}

export function problem(check: DoctorCheck, place: string, meaning: string, remedy: string): DoctorFinding {
  return { check, status: 'problem', place, meaning, remedy };
}

export function isFault(finding: DoctorFinding): finding is Fault {
  return finding.status === 'warning' || finding.status === 'problem';
}
