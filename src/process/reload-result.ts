/** What came of putting a configuration in effect. */
export type ReloadResult =
  /** In effect. `changed`: paths of settings. */
  | { readonly kind: 'applied'; readonly changed: readonly string[] }
  /** It says what the one in effect says. */
  | { readonly kind: 'unchanged' }
  /** The one before goes on. `problem` in lines, such as `tidegate.yaml:12:7 upstreams.payments.url: missing`. */
  | { readonly kind: 'refused'; readonly problem: string };
