/** What the output is, and which options go with it. Asked by the command line tool, the plugin and generate() before they begin; loads nothing. */

/** TypeScript, or JavaScript with declarations beside it. */
export type Target = 'ts' | 'js';

/** What contradicts itself, as text; empty when nothing does. */
export function conflict(options: {
  readonly target?: Target | undefined;
  readonly importExtension?: Target | undefined;
}): string {
  return options.target === 'js' && options.importExtension === 'ts'
    ? 'the target js imports .js; the import extension ts is for the target ts'
    : '';
}
