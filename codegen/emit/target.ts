/**
 * The kinds of output, and the options that are valid for each. The command line tool, the plugin and
 * generate() use it before they begin. It loads no other module.
 */

/** TypeScript, or JavaScript with separate declarations. */
export type Target = 'ts' | 'js';

/** Extension of imports between generated files. `none` omits it, for bundlers. */
export type ImportExtension = 'ts' | 'js' | 'none';

/** Returns a text about options that contradict each other, or an empty text when they do not. */
export function conflict(options: {
  readonly target?: Target | undefined;
  readonly importExtension?: ImportExtension | undefined;
}): string {
  return options.target === 'js' && (options.importExtension ?? 'js') !== 'js'
    ? `the target js imports .js; the import extension ${options.importExtension} is for the target ts`
    : '';
}
