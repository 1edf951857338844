/** The header that authenticates an account. The value is private: neither a log, JSON nor an inspection shows it. */
export class AccountCredential {
  /** As it is written upstream. */
  readonly header: string;
  /** In lower case. */
  readonly headerLower: string;
  readonly #value: string;

  constructor(header: string, value: string) {
    this.header = header;
    this.headerLower = header.toLowerCase();
    this.#value = value;
  }

  isSame(other: AccountCredential): boolean {
    return this.headerLower === other.headerLower && this.#value === other.#value;
  }

  /** Appends the header to a list of names and values in turn. */
  appendTo(headers: string[]): void {
    headers.push(this.header, this.#value);
  }
}
