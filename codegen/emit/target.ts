/**
 * What the output is, and which options go with it. Asked by the command line tool, the plugin and generate()
 * before they begin; loads nothing.
 */

/** TypeScript, or JavaScript with declarations beside it. */
export type Target = 'ts' | 'js';

/** Ending of imports between generated files; `none` leaves it out, for bundlers. */
export type ImportExtension = 'ts' | 'js' | 'none';

/** What contradicts itself, as text; empty when nothing does. */
export function conflict(options: {
  readonly target?: Target | undefined;
  readonly importExtension?: ImportExtension | undefined;
}): string {
  return options.target === 'js' && (options.importExtension ?? 'js') !== 'js'
    ? `the target js imports .js; the import extension ${options.importExtension} is for the target ts`
    : '';
}
