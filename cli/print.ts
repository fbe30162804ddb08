/** Prints diagnostics of the generator on the terminal, for gen and scaffold. */
import pc from '#picocolors';
import { type Diagnostic, formatDiagnostic, quoteSource } from '../codegen/diagnostic.ts';

export function printDiagnostics(diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    const colour = diagnostic.severity === 'error' ? pc.red : pc.yellow;
    console.error(colour(formatDiagnostic(diagnostic)));
    const quoted = quoteSource(diagnostic);
    if (quoted !== '') console.error(pc.dim(quoted));
  }
}
