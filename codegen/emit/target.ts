/**
 * The kinds of output, and the options that fit each. Used by the command line tool, the plugin and
 * generate() before they begin; loads nothing.
 */

/** TypeScript, or JavaScript with separate declarations. */
export type Target = 'ts' | 'js';

/** Extension of imports between generated files; `none` omits it, for bundlers. */
export type ImportExtension = 'ts' | 'js' | 'none';

/** Returns a text about options that contradict each other, or an empty text. */
export function conflict(options: {
  readonly target?: Target | undefined;
  readonly importExtension?: ImportExtension | undefined;
}): string {
  return options.target === 'js' && (options.importExtension ?? 'js') !== 'js'
    ? `the target js imports .js; the import extension ${options.importExtension} is for the target ts`
    : '';
}
