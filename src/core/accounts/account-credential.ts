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

  /** Identifies the credential to other processes. @param hash has a key, so that the tag does not show the value */
  tag(hash: (text: string) => string): string {
    return hash(`account\0${this.headerLower}\0${this.#value}`);
  }

  /** Appends the header to a list of names and values in turn. */
  appendTo(headers: string[]): void {
    headers.push(this.header, this.#value);
  }
}
