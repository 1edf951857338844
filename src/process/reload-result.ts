/** The result of a reload. */
export type ReloadResult =
  /** The configuration is in effect. `changed`: paths of the changed settings. */
  | { readonly kind: 'applied'; readonly changed: readonly string[] }
  /** The configuration has no changes. */
  | { readonly kind: 'unchanged' }
  /**
   * The previous configuration stays in effect. `problem` has one or more lines, such as `tidegate.yaml:12:7
   * upstreams.payments.url: missing`.
   */
  | { readonly kind: 'refused'; readonly problem: string };
