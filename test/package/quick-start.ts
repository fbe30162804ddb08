/**
 * Reads the files and commands that docs/start/quick-start.md has for a newcomer, so that tests use only
 * these.
 */

/**
 * Matches the files that a page shows, which are code blocks whose first line is a comment with a file name.
 */
const BLOCK = /^```\w+(?: \w+)?\n\/\/ ([\w./-]+\.\w+)\n([\s\S]*?)^```$/gm;

/** Returns file name → content, in the order of the page. */
export function filesOf(markdown: string): Map<string, string> {
  return new Map([...markdown.matchAll(BLOCK)].map((block) => [block[1]!, block[2]!]));
}

/** Returns the lines of all `sh` blocks of a page, in order, without comments. */
export function commandsOf(markdown: string): string[] {
  const lines = [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap((block) => block[1]!.split('\n'));
  return lines.map((line) => line.replace(/\s+#.*/, '').trim()).filter((line) => line !== '');
}
